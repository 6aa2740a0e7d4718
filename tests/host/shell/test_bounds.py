"""How long a close may take: three seconds in all, whatever the path, the other side and the agent's code do."""

import asyncio
import contextlib
import select
import socket

import pytest

from lab.host.machine.commands import Note
from lab.host.machine.host import DRAIN_S, MOST_WAITING, TOO_MANY
from lab.host.machine.job import SESSION_END_TIMEOUT_S
from lab.host.machine.remote import Watch
from lab.host.machine.states import HostState, JobState
from lab.host.protocol.codec import Codec
from lab.host.protocol.errors import FrameTooLong, NoMessage
from lab.host.protocol.framing import frame
from lab.host.protocol.messages import (
    Answer,
    Ask,
    CloseReason,
    Event,
    Finalized,
    FinalizeSimulation,
    Message,
    Pong,
    Request,
    Response,
    RunInput,
    SessionClosed,
    Verdict,
)
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.failures import RequestFailed
from lab.host.shell.host import SessionHost
from lab.host.shell.job import Job
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import TransportClosed
from tests.host.shell.leaping import Loop, Slow, play
from tests.host.shell.pairs import stream

ROOM = "room-1"
NEVER_S = 1e6
FINALIZE = Request("1", FinalizeSimulation())


def now() -> float:
    return asyncio.get_running_loop().time()


async def turns() -> None:
    """Let all go on that can without waiting."""
    for _ in range(20):
        await asyncio.sleep(0)


async def hold_on(for_s: float) -> None:
    """Code that does not end when it is told to."""
    until = now() + for_s
    while now() < until:
        try:
            await asyncio.sleep(until - now())
        except asyncio.CancelledError:
            continue


class Stubborn(ScriptedAgent):
    """One whose code goes on for a minute, whoever stops it."""

    async def answer(self, ask: Ask) -> Answer:
        await hold_on(60.0)
        return await super().answer(ask)


@pytest.mark.parametrize(
    ("flush_s", "close_s", "took_s"),
    [
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 2.0),
        (NEVER_S, 0.0, DRAIN_S),  # a path that takes nothing
        (0.0, NEVER_S, DRAIN_S),  # a remote that reads, and does not end the stream
        (2.9, NEVER_S, DRAIN_S),
    ],
)
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_hosts_close_takes_three_seconds_at_most(
    flush_s: float, close_s: float, took_s: float, stubborn: bool
) -> None:
    async def scenario() -> None:
        transport = Slow(flush_s, close_s)
        host = SessionHost(transport)
        host.register_session(Stubborn("s1", ROOM))
        if stubborn:
            transport.come(Request("1", RunInput("book it")))
            await turns()
        began = now()
        await host.close()
        assert now() - began == pytest.approx(DRAIN_S if stubborn else took_s)
        assert host.state is HostState.CLOSED
        assert transport.aborted == (max(flush_s, close_s) == NEVER_S)

    assert play(scenario) == []


def test_a_lost_host_waits_no_longer_for_the_code_of_its_session() -> None:
    async def scenario() -> None:
        transport = Slow()
        host = SessionHost(transport)
        host.register_session(Stubborn("s1", ROOM))
        transport.come(Request("1", RunInput("book it")))
        await turns()
        transport.abort()
        await host.wait_closed()
        assert now() == pytest.approx(DRAIN_S)

    assert play(scenario) == []


async def good(_provisional: Verdict) -> Verdict:
    return Verdict(True, "booked")


@pytest.mark.parametrize("drain_s", [DRAIN_S, 0.5])
def test_a_verdict_that_stays_queued_is_undelivered_after_the_drains_time(drain_s: float) -> None:
    """And the shutdown goes on, which has as long for the host's close."""

    async def scenario() -> None:
        transport = Slow(flush_s=NEVER_S)
        job = Job(ROOM, transport, simulated=True, on_simulation_end=good, drain_s=drain_s)
        job.shutdown()
        transport.come(FINALIZE)
        await job.wait()
        assert now() == pytest.approx(2 * drain_s)

    assert play(scenario) == []


def test_a_verdict_that_is_written_in_that_time_is_delivered() -> None:
    async def scenario() -> None:
        transport = Slow(flush_s=2.9)
        job = Job(ROOM, transport, simulated=True, on_simulation_end=good)
        transport.come(FINALIZE)
        await turns()
        job.shutdown()
        await job.wait()
        assert now() == pytest.approx(2.9 + 2.9)

    assert play(scenario) == []


def test_a_job_does_not_wait_for_a_users_code_that_goes_on() -> None:
    """It has as long to end as the host has for its close."""

    async def judge(_provisional: Verdict) -> Verdict | None:
        await hold_on(600.0)
        return None

    async def scenario() -> None:
        transport = Slow(flush_s=1.0)
        job = Job(ROOM, transport, simulated=True, on_simulation_end=judge)
        transport.come(FINALIZE)
        await turns()
        job.shutdown()
        await job.wait()
        assert now() == pytest.approx(SESSION_END_TIMEOUT_S + DRAIN_S)

    assert play(scenario) == []


@pytest.mark.parametrize("flush_s", [2.0, NEVER_S])
def test_a_job_waits_for_the_hosts_of_its_sessions_as_for_its_own(flush_s: float) -> None:
    async def scenario() -> None:
        away = Slow(flush_s)

        async def elsewhere(_room: str) -> Slow:
            return away

        job = Job(ROOM, Slow(), elsewhere=elsewhere)
        there = ScriptedAgent("s2", "room-2")
        job.start_session(there)
        host = await job.host_of(there)
        job.shutdown()
        await job.wait()
        assert host.state is HostState.CLOSED
        assert away.taken == [Event(SessionClosed(CloseReason.JOB_SHUTDOWN))]
        assert now() == pytest.approx(min(flush_s, DRAIN_S))

    assert play(scenario) == []


def test_a_way_to_another_room_that_is_not_found_is_given_up() -> None:
    async def scenario() -> None:
        made: list[Slow] = []
        notes: list[Note] = []

        async def elsewhere(_room: str) -> Slow:
            await hold_on(10.0)
            made.append(Slow())
            return made[0]

        job = Job(ROOM, Slow(), elsewhere=elsewhere, note=notes.append)
        job.start_session(ScriptedAgent("s2", "room-2"))
        await turns()
        job.shutdown(CloseReason.JOB_SHUTDOWN)
        await job.wait()
        assert now() == pytest.approx(DRAIN_S)
        await asyncio.sleep(10.0)
        assert [transport.aborted for transport in made] == [True]
        assert "not found in time" in notes[-1].fields["error"]

    assert play(scenario) == []


def test_a_loop_that_stood_still_reads_what_came_meanwhile_before_it_gives_the_host_up() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        ours, theirs = socket.socketpair()
        with theirs:
            remote = RemoteSession(await stream(ours), watch=Watch(ask_after_s=2.0, lost_after_s=1.0))
            for _ in range(3):
                while not select.select([theirs], [], [], 0)[0]:
                    await asyncio.sleep(0.5)
                probe = Codec().decode(theirs.recv(1000)[4:])
                assert isinstance(probe, Request)
                theirs.send(frame(Codec().encode(Response(probe.request_id, Pong()))))
                loop.stand_still(3600.0)
                await turns()
            assert remote.ended_by is None
            with pytest.raises(RequestFailed, match=r"nothing came for 3\.\d s"):
                await remote.ping()
            await remote.close()

    assert play(scenario) == []


def test_a_defect_below_a_remote_ends_it_and_is_told() -> None:
    async def scenario() -> None:
        transport = Slow()
        remote = RemoteSession(transport)
        asking = asyncio.ensure_future(remote.ping())
        await turns()
        transport.come(RuntimeError("it broke"))
        with pytest.raises(RequestFailed, match="it broke"):
            await asking
        assert transport.aborted
        assert "it broke" in await remote.wait_ended()
        await remote.close()

    (defect,) = play(scenario)
    assert str(defect["exception"]) == "it broke"


def test_a_defect_below_a_host_ends_it_and_is_told() -> None:
    async def scenario() -> None:
        transport = Slow()
        host = SessionHost(transport)
        transport.come(RuntimeError("it broke"))
        await host.wait_closed()
        assert transport.aborted

    (defect,) = play(scenario)
    assert str(defect["exception"]) == "it broke"


class Owner:
    """Of a host, told of its loss."""

    def __init__(self) -> None:
        self.lost_by: list[str] = []

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
        raise AssertionError((request_id, ask))

    def lost(self, why: str) -> None:
        self.lost_by.append(why)


def broken(_note: Note) -> None:
    raise OSError("nobody reads it")


@pytest.mark.parametrize(
    "what",
    [Response("1", Pong()), NoMessage("it is none"), FrameTooLong(2**30, 2**20), TransportClosed("they have gone")],
    ids=lambda what: type(what).__name__,
)
def test_a_note_that_raises_ends_the_host_and_its_owner_is_told(what: Message | Exception) -> None:
    async def scenario() -> None:
        transport, owner = Slow(), Owner()
        host = SessionHost(transport, owner=owner, note=broken)
        transport.come(what)
        await host.wait_closed()
        assert host.state is HostState.CLOSED
        assert transport.aborted
        assert len(owner.lost_by) == 1

    assert {str(defect["exception"]) for defect in play(scenario)} == {"nobody reads it"}


def test_a_note_that_raises_ends_the_job_and_all_of_it_is_done() -> None:
    async def scenario() -> None:
        transport = Slow()
        job = Job(ROOM, transport, simulated=True, note=broken)
        agent = ScriptedAgent("s1", ROOM)
        with pytest.raises(OSError, match="nobody reads it"):
            job.start_session(agent)
        with contextlib.suppress(OSError):
            job.shutdown()
        await job.wait()
        assert job.state is JobState.DONE
        assert transport.aborted

    assert {str(defect["exception"]) for defect in play(scenario)} <= {"nobody reads it"}


def test_a_note_that_raises_ends_the_remote_and_who_waits_is_told() -> None:
    async def scenario() -> None:
        transport = Slow()
        remote = RemoteSession(transport, note=broken)
        asking = asyncio.ensure_future(remote.ping())
        await turns()
        transport.come(Response("another", Pong()))
        with pytest.raises(RequestFailed, match="nobody reads it"):
            await asking
        assert transport.aborted
        await remote.close()

    assert {str(defect["exception"]) for defect in play(scenario)} == {"nobody reads it"}


def test_requests_that_wait_are_bounded_and_the_verdict_can_be_asked_for_all_the_same() -> None:
    async def scenario() -> None:
        transport = Slow()
        job = Job(ROOM, transport, simulated=True, on_simulation_end=good)
        agent = ScriptedAgent("s1", ROOM)
        job.start_session(agent)
        agent.ready.clear()
        for number in range(MOST_WAITING + 2):
            transport.come(Request(f"r{number}", RunInput("hello")))
        transport.come(FINALIZE)
        for _ in range(20):
            await turns()
        assert [one for one in transport.taken if isinstance(one, Response)] == [
            Response(f"r{MOST_WAITING}", error=TOO_MANY),
            Response(f"r{MOST_WAITING + 1}", error=TOO_MANY),
            Response("1", Finalized(Verdict(True, "booked"))),
        ]
        job.shutdown()
        await job.wait()

    assert play(scenario) == []
