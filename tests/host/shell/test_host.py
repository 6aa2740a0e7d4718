"""A host on a real stream: what it hears it answers, what it is told it tells on, and how it ends."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lab.host.machine.commands import Audit, Note, Outcome
from lab.host.machine.host import CLOSING, NO_SESSION, SESSION_OVER
from lab.host.machine.misuse import AlreadyRegistered, SessionOver
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.states import HostState
from lab.host.protocol.codec import Codec
from lab.host.protocol.errors import FrameTooLong, Unsayable
from lab.host.protocol.framing import MOST, frame
from lab.host.protocol.messages import (
    AgentInfo,
    AgentStateChanged,
    Answer,
    Ask,
    ChatRole,
    CloseReason,
    ErrorTold,
    EventBody,
    FinalizeSimulation,
    GetAgentInfo,
    Ping,
    Pong,
    Request,
    Response,
    RunInput,
    SessionClosed,
    Verdict,
    said,
)
from lab.host.shell.agent import NOT_UNDERSTOOD, ScriptedAgent
from lab.host.shell.failures import RequestFailed
from lab.host.shell.host import SessionHost
from lab.host.shell.owner import NO_JOB
from lab.host.shell.remote import RemoteSession
from lab.host.tables.stage import Carrier
from tests.host.shell.pairs import CARRIERS, asked, go_on_reading, hosted, play, raw, stop_reading, until


class Agent(ScriptedAgent):
    """One whose answers a test chooses."""

    async def answer(self, ask: Ask) -> Answer:
        match ask:
            case GetAgentInfo():
                return AgentInfo("s1", "x" * MOST)
            case RunInput("break"):
                raise RuntimeError("it broke")
            case RunInput("say nothing"):
                raise RuntimeError
            case RunInput("be cancelled"):
                raise asyncio.CancelledError
            case RunInput("say what is none"):
                return "hello"  # type: ignore[return-value]  # as of code that nobody checks
            case _:
                return await super().answer(ask)


async def refused(remote: RemoteSession, ask: Ask) -> str:
    with pytest.raises(RequestFailed) as failed:
        await remote.request(ask)
    assert failed.value.outcome is Outcome.REFUSED
    return failed.value.why


def test_a_closed_session_is_told_of_and_not_asked_any_more() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            assert await remote.ping() == Pong()
            agent.end(EndCause.ERROR, "no model")
            assert await remote.wait_told() == SessionClosed(CloseReason.ERROR, "no model")
            assert await refused(remote, Ping()) == NO_SESSION
            assert host.state is HostState.EMPTY

    play(scenario)


def test_who_waits_at_the_sessions_end_is_answered_and_the_agents_code_is_stopped() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent, asking = await asked(host, remote)
            (task,) = host._asked._answering.values()
            agent.end(EndCause.TASK_COMPLETED)
            with pytest.raises(RequestFailed, match=SESSION_OVER):
                await asking
            await until(task.done, "the agent's code is stopped")
            assert task.cancelled()

    play(scenario)


def test_what_an_agents_code_raises_is_the_requests_error_and_the_next_one_is_served() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(Agent("s1", "room"))
            assert await refused(remote, RunInput("break")) == "it broke"
            assert await refused(remote, RunInput("say nothing")) == "RuntimeError"
            assert await refused(remote, RunInput("be cancelled")) == "CancelledError"
            assert await remote.ping() == Pong()

    play(scenario)


def test_an_answer_that_is_too_long_is_an_error_of_its_request() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(Agent("s1", "room"))
            assert "longer than the 1048576" in await refused(remote, GetAgentInfo())
            assert await remote.ping() == Pong()

    play(scenario)


def test_an_answer_that_is_none_is_an_error_of_its_request() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(Agent("s1", "room"))
            assert "what was to be said: str is none" in await refused(remote, RunInput("say what is none"))
            assert await remote.ping() == Pong()

    play(scenario)


def test_a_request_that_is_none_is_its_askers_mistake() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(ScriptedAgent("s1", "room"))
            with pytest.raises(Unsayable, match="str is none"):
                await remote.request("hello")  # type: ignore[arg-type]  # as of code that nobody checks
            assert await remote.ping() == Pong()
            assert not remote._machine.waiting

    play(scenario)


@pytest.mark.parametrize("attached", [False, True], ids=["no session", "a session"])
def test_a_request_whose_id_leaves_no_room_for_an_answer_is_told_of_and_the_next_one_is_served(attached: bool) -> None:
    async def scenario() -> None:
        async with raw() as (transport, reader, writer):
            host = SessionHost(transport)
            if attached:
                host.register_session(ScriptedAgent("s1", "room"))
            writer.write(frame(_filling(None)))
            assert "leaves no room for an answer. Fix: give it a shorter one" in (await _next(reader)).body.message
            writer.write(frame(Codec().encode(Request("2", Ping()))))
            assert await _next(reader) == Response("2", *((Pong(), None) if attached else (None, NO_SESSION)))
            await host.close()

    play(scenario)


def _filling(ask: Ask | None) -> bytes:
    """A message as long as one may be, nearly all of it its id."""
    room = MOST - 10
    short = len(Codec().encode(Request("i" * room, ask)))
    return Codec().encode(Request("i" * (room + MOST - short), ask))


def test_an_id_that_waits_already_is_told_of_however_long_it_is() -> None:
    async def scenario() -> None:
        async with raw() as (transport, reader, writer):
            host = SessionHost(transport)
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            agent.ready.clear()
            for _ in range(2):
                writer.write(frame(_filling(RunInput("hello"))))
            told = await _next(reader)
            while not isinstance(told.body, ErrorTold):
                told = await _next(reader)
            told = told.body.message
            assert "iii... is being answered" in told
            assert len(told) < 200
            await host.close()

    play(scenario)


def test_a_request_that_is_too_long_is_its_askers_mistake() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(ScriptedAgent("s1", "room"))
            with pytest.raises(FrameTooLong):
                await remote.run_input("x" * MOST)
            assert await remote.ping() == Pong()
            assert not remote._machine.waiting

    play(scenario)


def test_a_session_registered_twice_is_an_error_and_goes_on() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            with pytest.raises(AlreadyRegistered):
                host.register_session(agent)
            agent.end(EndCause.USER_INITIATED)
            await remote.wait_told()
            told = [body async for body in _until_closed(remote)]
            assert told == [SessionClosed(CloseReason.USER_INITIATED)]

    play(scenario)


@pytest.mark.parametrize("known", [True, False], ids=["told of here", "never seen here"])
def test_a_session_that_has_ended_cannot_be_registered(known: bool) -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            if known:
                host.register_session(agent)
            agent.end(EndCause.USER_INITIATED)
            with pytest.raises(SessionOver, match=r"s1 has ended.*Fix: make a new session"):
                host.register_session(agent)
            assert await refused(remote, Ping()) == NO_SESSION
            host.register_session(ScriptedAgent("s1", "room"))
            assert await remote.ping() == Pong()

    play(scenario)


async def _until_closed(remote: RemoteSession) -> AsyncIterator[EventBody]:
    async for body in remote.events():
        yield body
        if isinstance(body, SessionClosed):
            return


def test_another_session_of_the_same_name_is_told_of_and_the_one_before_is_not() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            first, second = ScriptedAgent("s1", "room"), ScriptedAgent("s1", "room")
            host.register_session(first)
            host.unregister_session(first)
            host.register_session(second)
            first.end(EndCause.ERROR)
            assert await remote.ping() == Pong()
            assert remote.closed is None
            second.end(EndCause.TASK_COMPLETED)
            assert await remote.wait_told() == SessionClosed(CloseReason.COMPLETED)

    play(scenario)


def test_taking_a_session_away_again_leaves_another_one_of_its_name() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            first, second = ScriptedAgent("s1", "room"), ScriptedAgent("s1", "room")
            host.register_session(first)
            host.unregister_session(first)
            host.register_session(second)
            host.unregister_session(first)
            first.tell(AgentStateChanged())
            host.closed(first, Ending(EndCause.ERROR))
            assert await remote.ping() == Pong()
            assert host.session is second
            assert remote.closed is None
            assert remote._events.empty()

    play(scenario)


def test_another_session_of_the_same_name_replaces_the_attached_one() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            first, second = ScriptedAgent("s1", "room"), ScriptedAgent("s1", "room", {"hi": "it is the second"})
            host.register_session(first)
            first.ready.clear()
            asking = asyncio.ensure_future(remote.run_input("hi"))
            await until(lambda: host._asked._answering, "the first one is asked")
            host.register_session(second)
            with pytest.raises(AlreadyRegistered):
                host.register_session(second)
            assert (await remote.run_input("hi")).items[1] == said(ChatRole.ASSISTANT, "it is the second", id="item-2")
            first.ready.set()
            assert (await asking).items[1] == said(ChatRole.ASSISTANT, NOT_UNDERSTOOD, id="item-2")
            first.end(EndCause.ERROR)
            second.end(EndCause.TASK_COMPLETED)
            assert await remote.wait_told() == SessionClosed(CloseReason.COMPLETED)

    play(scenario)


@pytest.mark.parametrize(
    ("error", "why"),
    [("x" * MOST, "longer than the 1048576"), (OSError("no disk"), "error cannot be OSError('no disk')")],
    ids=type,
)
def test_an_end_whose_error_cannot_be_said_is_told_all_the_same(error: Any, why: str) -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            agent.end(EndCause.ERROR, error)
            told = await remote.wait_told()
            assert told.reason is CloseReason.ERROR
            assert why in (told.error or "")

    play(scenario)


@pytest.mark.parametrize("body", [ErrorTold("x" * MOST), "hello"], ids=type)
def test_an_event_that_cannot_be_said_is_written_down(body: Any) -> None:
    async def scenario() -> None:
        notes: list[Note] = []
        async with hosted(note=notes.append) as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            agent.tell(body)
            assert await remote.ping() == Pong()
        assert [note.fields["what"] for note in notes if note.event is Audit.UNSENT] == ["Event"]

    play(scenario)


def test_a_session_that_was_taken_away_is_not_told_of() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            host.unregister_session(agent)
            agent.tell(AgentStateChanged())
            agent.end(EndCause.ERROR)
            assert await refused(remote, Ping()) == NO_SESSION
            assert remote.closed is None

    play(scenario)


def test_a_session_without_a_job_has_no_verdict() -> None:
    async def scenario() -> None:
        async with hosted() as (_, remote, _):
            with pytest.raises(RequestFailed, match=NO_JOB):
                await remote.finalize_simulation(Verdict())

    play(scenario)


def test_a_close_answers_who_waits_and_then_ends_the_transport() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent, asking = await asked(host, remote)
            await host.close()
            await host.close()
            with pytest.raises(RequestFailed, match=CLOSING):
                await asking
            await remote.wait_ended()
            assert agent._listeners == []

    play(scenario)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_a_close_gives_up_on_a_remote_that_reads_nothing(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (ours, theirs):
            stop_reading(theirs)
            host = SessionHost(ours, drain_s=0.05)
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            for _ in range(40):
                agent.tell(ErrorTold("x" * (MOST // 2)))
            await host.close()
            assert host.state is HostState.CLOSED
            theirs.abort()

    play(scenario)


def test_bad_frames_are_told_and_what_follows_is_served() -> None:
    async def scenario() -> None:
        async with raw() as (transport, reader, writer):
            host = SessionHost(transport)
            writer.write(frame(b"\xff\xff") + frame(b"") + frame(b"*\x05\n\x019\x1a\x00"))
            writer.write(frame(b'"\x05\n\x011\x12\x00'))
            found = [await _next(reader) for _ in range(4)]
            complaints = [message.body.message for message in found[:3]]
            assert "no protobuf" in complaints[0]
            assert "none of the known fields" in complaints[1]
            assert "Response 9 answers no request" in complaints[2]
            assert found[3] == Response("1", error=NO_SESSION)
            assert host.state is HostState.EMPTY
            await host.close()

    play(scenario)


@pytest.mark.parametrize(
    ("data", "ends", "told"),
    [(b"\x7f\xff\xff\xff", False, "2147483647 octets is longer"), (b"\x00\x00\x00\x09abc", True, "after 7 octets")],
    ids=["too long", "truncated"],
)
def test_a_frame_that_ends_the_reading_is_told_before_the_transport_goes(data: bytes, ends: bool, told: str) -> None:
    async def scenario() -> None:
        async with raw() as (transport, reader, writer):
            host = SessionHost(transport)
            writer.write(data)
            if ends:
                writer.write_eof()
            message = await _next(reader)
            assert told in message.body.message
            assert await reader.read() == b""
            await host.wait_closed()

    play(scenario)


async def _next(reader: asyncio.StreamReader) -> Any:
    """A message, of whose kind the test is sure."""
    octets = int.from_bytes(await reader.readexactly(4), "big")
    return Codec().decode(await reader.readexactly(octets))


def test_a_lost_remote_ends_the_host_and_its_sessions_go_on() -> None:
    async def scenario() -> None:
        async with hosted() as (host, _, far):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            far.abort()
            await until(lambda: host.state is HostState.CLOSED, "the host notices")
            agent.tell(AgentStateChanged())
            assert agent.ending is None

    play(scenario)


def test_a_closed_session_is_not_kept_alive_by_its_host() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            seen = weakref.ref(agent)
            host.register_session(agent)
            await remote.ping()
            agent.end(EndCause.TASK_COMPLETED)
            await remote.wait_told()
            del agent
            gc.collect()
            assert seen() is None

    play(scenario)


def test_the_jobs_answer_that_cannot_be_sent_is_told_to_be_unsent() -> None:
    class Owner:
        def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
            self.asked = (request_id, ask)

        def lost(self, why: str) -> None:
            self.why = why

    async def scenario() -> None:
        owner = Owner()
        async with hosted(owner=owner) as (host, remote, far):
            asking = asyncio.ensure_future(remote.finalize_simulation(Verdict(True, "well")))
            await until(lambda: hasattr(owner, "asked"), "the owner is asked")
            assert owner.asked[1] == FinalizeSimulation(True, "well")
            far.abort()
            await until(lambda: hasattr(owner, "why"), "the owner is told of the loss")
            assert not await host.answer(owner.asked[0], None, "too late")
            with pytest.raises(RequestFailed, match="transport closed"):
                await asking

    play(scenario)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_a_remote_that_takes_no_answers_is_not_heard_any_further(carrier: Carrier) -> None:
    """Until it takes them: then every request has its answer."""

    class Long(ScriptedAgent):
        asked = 0

        async def answer(self, ask: Ask) -> Answer:  # noqa: ARG002 -- the port has it
            self.asked += 1
            return AgentInfo("s1", "x" * (MOST // 2))

    async def scenario() -> None:
        async with carrier.pair() as (ours, theirs):
            stop_reading(theirs)
            host = SessionHost(ours)
            agent = Long("s1", "room")
            host.register_session(agent)
            for number in range(200):
                theirs.put(Request(f"{number}", GetAgentInfo()))
            await until(lambda: ours.queued > MOST, "the answers wait")
            for _ in range(1000):
                await asyncio.sleep(0)
            assert agent.asked < 50
            assert ours.queued <= 2 * MOST
            go_on_reading(theirs)
            found = [await theirs.receive() for _ in range(200)]
            assert [one.request_id for one in found if isinstance(one, Response)] == [f"{one}" for one in range(200)]
            theirs.abort()
            await host.close()

    play(scenario)


def test_events_that_wait_do_not_keep_the_host_from_hearing() -> None:
    async def scenario() -> None:
        async with CARRIERS[0].pair() as (ours, theirs):
            stop_reading(theirs)
            host = SessionHost(ours)
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            for _ in range(40):
                agent.tell(ErrorTold("x" * (MOST // 2)))
            agent.ready.clear()
            theirs.put(Request("1", RunInput("hello")))
            await until(lambda: host._asked._answering, "the agent is asked")
            theirs.abort()
            await host.wait_closed()

    play(scenario)
