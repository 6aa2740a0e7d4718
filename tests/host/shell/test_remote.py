"""A remote's requests end, its events end with the transport, and its watchdog tells a silent host."""

import asyncio

import pytest

from lab.host.machine.commands import Outcome
from lab.host.machine.reasons import EndCause
from lab.host.machine.remote import TRANSPORT_CLOSED, Watch
from lab.host.machine.variant import VARIANTS
from lab.host.protocol.messages import (
    AgentStateChanged,
    ChatRole,
    CloseReason,
    GetFrameworkInfo,
    GetRtcStats,
    GetSessionUsage,
    IoInput,
    IoUpdated,
    Pong,
    RtcStats,
    SessionClosed,
    SessionUsage,
    UpdateIo,
    said,
)
from lab.host.shell.agent import NOT_UNDERSTOOD, ScriptedAgent
from lab.host.shell.failures import NotTold, RequestFailed
from lab.host.shell.remote import RemoteSession
from lab.host.tables.stage import Carrier
from tests.host.shell.pairs import CARRIERS, asked, hosted, play, raw, until


def test_every_request_has_its_answer() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(ScriptedAgent("s1", "room", {"hi": "hello"}))
            items = (said(ChatRole.USER, "hi", id="item-1"), said(ChatRole.ASSISTANT, "hello", id="item-2"))
            assert (await remote.run_input("hi")).items == items
            assert (await remote.chat_history()).items == items
            assert (await remote.run_input("what?")).items[1] == said(ChatRole.ASSISTANT, NOT_UNDERSTOOD, id="item-4")
            assert (await remote.session_state()).agent_id == "s1"
            assert (await remote.agent_info()).id == "s1"
            assert await remote.ping() == Pong()
            assert await remote.request(GetRtcStats()) == RtcStats()
            assert await remote.request(GetSessionUsage()) == SessionUsage()
            assert await remote.request(UpdateIo(IoInput(audio_enabled=False))) == IoUpdated()
            assert await remote.request(GetFrameworkInfo()) is not None

    play(scenario)


def test_a_dropped_request_times_out() -> None:
    async def scenario() -> None:
        async with hosted(variant=VARIANTS["requests dropped"]) as (_, remote, _):
            with pytest.raises(RequestFailed) as failed:
                await remote.request(GetRtcStats(), timeout_s=0.02)
            assert failed.value.outcome is Outcome.TIMED_OUT

    play(scenario)


def test_with_the_transport_requests_and_events_end_and_later_requests_at_once() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            _, asking = await asked(host, remote)
            host._transport.abort()
            with pytest.raises(RequestFailed, match=TRANSPORT_CLOSED):
                await asking
            assert await remote.wait_ended() == "the other side ended it"
            assert len([body async for body in remote.events()]) == 2
            assert [body async for body in remote.events()] == []
            with pytest.raises(RequestFailed, match=TRANSPORT_CLOSED):
                await remote.ping()

    play(scenario)


def test_who_waits_for_a_sessions_end_is_told_that_it_is_told_no_more() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            agent = ScriptedAgent("s1", "room")
            host.register_session(agent)
            waiting = asyncio.ensure_future(remote.wait_told())
            await remote.ping()
            host._transport.abort()
            with pytest.raises(NotTold, match="before the transport's: the other side ended it"):
                await waiting
            with pytest.raises(NotTold):
                await remote.wait_told()

    play(scenario)


def test_what_was_told_before_the_transports_end_stays_told() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            host.register_session(agent := ScriptedAgent("s1", "room"))
            agent.end(EndCause.TASK_COMPLETED)
            await host.close()
            await remote.wait_ended()
            assert await remote.wait_told() == SessionClosed(CloseReason.COMPLETED)

    play(scenario)


def test_after_the_watchdog_nobody_waits_to_be_told() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, _):
            remote = RemoteSession(transport, watch=Watch(ask_after_s=0.02, lost_after_s=0.02))
            with pytest.raises(NotTold, match="nothing came for"):
                await remote.wait_told()
            await remote.close()
            with pytest.raises(NotTold, match="nothing came for"):
                await remote.wait_told()

    play(scenario)


def test_a_silent_host_is_given_up_by_the_watchdog() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, _):
            remote = RemoteSession(transport, watch=Watch(ask_after_s=0.02, lost_after_s=0.02))
            with pytest.raises(RequestFailed, match="nothing came for") as failed:
                await remote.ping()
            assert failed.value.outcome is Outcome.LOST
            assert "nothing came for" in await remote.wait_ended()
            await remote.close()

    play(scenario)


@pytest.mark.parametrize("attached", [False, True], ids=["no session", "a session"])
def test_a_host_that_answers_is_not_given_up(attached: bool) -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            if attached:
                host.register_session(ScriptedAgent("s1", "room"))
            remote._machine._watch = Watch(ask_after_s=0.005, lost_after_s=5.0)
            remote._alarm.set(remote._machine.next_at())
            heard = remote._machine._heard_at
            await until(lambda: remote._machine._heard_at > heard + 0.05, "several pings are answered")
            assert remote.ended_by is None

    play(scenario)


@pytest.mark.parametrize("data", [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x02\x1a"], ids=["too long", "truncated"])
def test_what_cannot_be_read_on_ends_the_remote_and_says_why(data: bytes) -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, writer):
            remote = RemoteSession(transport)
            asking = asyncio.ensure_future(remote.ping())
            writer.write(data)
            writer.write_eof()
            with pytest.raises(RequestFailed, match=r"octets"):
                await asking
            assert "octets" in await remote.wait_ended()
            await remote.close()

    play(scenario)


def test_a_frame_that_is_no_message_and_a_response_without_a_request_are_written_down_and_read_past() -> None:
    async def scenario() -> None:
        async with raw() as (transport, _, writer):
            notes: list[str] = []
            remote = RemoteSession(transport, note=lambda note: notes.append(note.event.value))
            writer.write(b"\x00\x00\x00\x02\xff\xff" + b"\x00\x00\x00\x07*\x05\n\x019\x1a\x00")
            await until(lambda: len(notes) == 2 or remote.ended_by, "both are written down")
            assert notes[:2] == ["malformed", "unasked"]
            assert remote.ended_by is None
            await remote.close()

    play(scenario)


def test_a_close_ends_what_waits() -> None:
    async def scenario() -> None:
        async with hosted() as (host, remote, _):
            _, asking = await asked(host, remote)
            assert isinstance(remote._events.get_nowait(), AgentStateChanged)
            await remote.close()
            with pytest.raises(RequestFailed, match="closed here"):
                await asking

    play(scenario)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_a_close_does_not_wait_for_a_path_that_takes_nothing(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.host.shell.remote.CLOSE_S", 0.05)

    async def scenario() -> None:
        async with carrier.pair() as (ours, theirs):
            remote = RemoteSession(theirs)
            asking = [asyncio.ensure_future(remote.run_input("x" * 1_000_000)) for _ in range(20)]
            await until(lambda: len(remote._machine.waiting) == 20, "all are asked")
            await remote.close()
            failed = await asyncio.gather(*asking, return_exceptions=True)
            assert all(isinstance(error, RequestFailed) for error in failed)
            ours.abort()

    play(scenario)
