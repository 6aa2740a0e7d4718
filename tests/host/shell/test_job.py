"""A job on real streams: sessions that come and go, a simulation's end, a room's."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lab.host.machine.commands import Audit, Note
from lab.host.machine.job import NO_SIMULATION, NO_VERDICT, NOT_CLOSED
from lab.host.machine.misuse import AlreadyRegistered, SessionOver
from lab.host.machine.reasons import EndCause
from lab.host.machine.states import JobState
from lab.host.protocol.messages import CloseReason, ErrorTold, FinalizeSimulation, Request, SessionClosed, Verdict
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.failures import RequestFailed
from lab.host.shell.job import Job
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import Transport
from lab.host.tables.stage import Carrier
from tests.host.shell.pairs import CARRIERS, SOON_S, play, stop_reading, stream, until

ROOM = "room-1"
GOOD = Verdict(True, "booked")


class Hanging(ScriptedAgent):
    """One whose close never comes to its end."""

    async def close(self, cause: EndCause, error: str | None = None) -> None:  # noqa: ARG002 -- the port has them
        await asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def working(**options: Any) -> AsyncIterator[tuple[Job, RemoteSession]]:
    ours, theirs = socket.socketpair()
    job, remote = Job(ROOM, await stream(ours), **options), RemoteSession(await stream(theirs))
    try:
        yield job, remote
    finally:
        await remote.close()
        job.shutdown()
        await job.wait()


async def good(_provisional: Verdict) -> Verdict:
    return GOOD


def test_sessions_come_and_go_and_the_host_stays() -> None:
    async def scenario() -> None:
        async with working() as (job, remote):
            for name in ("s1", "s2"):
                agent = ScriptedAgent(name, ROOM)
                job.start_session(agent)
                assert (await remote.agent_info()).id == name
                agent.end(EndCause.TASK_COMPLETED)
                with pytest.raises(RequestFailed, match="no active session"):
                    await remote.ping()

    play(scenario)


def test_a_shutdown_closes_the_session_tells_it_and_goes() -> None:
    async def scenario() -> None:
        async with working() as (job, remote):
            agent = ScriptedAgent("s1", ROOM)
            job.start_session(agent)
            job.shutdown()
            await job.wait()
            assert await remote.wait_told() == SessionClosed(CloseReason.JOB_SHUTDOWN)
            await remote.wait_ended()
            assert agent.ending is not None
            with pytest.raises(ValueError, match="too late"):
                job.start_session(ScriptedAgent("s2", ROOM))

    play(scenario)


def test_the_verdict_comes_after_the_sessions_end_and_then_the_job_ends() -> None:
    async def scenario() -> None:
        async with working(simulated=True, on_simulation_end=good) as (job, remote):
            agent = ScriptedAgent("s1", ROOM)
            job.start_session(agent)
            job.shutdown()
            await remote.wait_told()
            assert job.state is JobState.SERVING
            assert await remote.finalize_simulation(Verdict()) == GOOD
            await job.wait()
            assert await remote.wait_ended()

    play(scenario)


def test_a_second_request_for_the_verdict_gets_the_same() -> None:
    async def scenario() -> None:
        async with working(simulated=True, on_simulation_end=good) as (_, remote):
            assert await remote.finalize_simulation(Verdict()) == GOOD
            assert await remote.finalize_simulation(Verdict()) == GOOD

    play(scenario)


def test_without_a_simulation_there_is_no_verdict() -> None:
    async def scenario() -> None:
        async with working() as (_, remote):
            with pytest.raises(RequestFailed, match=NO_SIMULATION):
                await remote.finalize_simulation(Verdict())

    play(scenario)


def test_a_users_code_that_hangs_is_ended_with_the_job_and_the_simulator_told() -> None:
    ended: list[bool] = []

    async def hang(_provisional: Verdict) -> Verdict | None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)
        return None

    async def scenario() -> None:
        async with working(simulated=True, on_simulation_end=hang, session_end_timeout_s=0.02) as (job, remote):
            job.shutdown()
            with pytest.raises(RequestFailed, match=NO_VERDICT):
                await remote.finalize_simulation(Verdict())
            await job.wait()
            assert ended == [True]

    play(scenario)


def test_a_session_whose_close_hangs_is_told_of_in_time() -> None:
    async def scenario() -> None:
        async with working(session_end_timeout_s=0.02) as (job, remote):
            job.start_session(Hanging("s1", ROOM))
            job.shutdown()
            assert await remote.wait_told() == SessionClosed(CloseReason.JOB_SHUTDOWN, NOT_CLOSED)
            await job.wait()

    play(scenario)


def test_a_remote_that_broke_the_framing_is_gone_for_its_job_too() -> None:
    async def scenario() -> None:
        async with working(simulated=True) as (job, remote):
            job.start_session(ScriptedAgent("s1", ROOM))
            remote._transport._writer.write(b"\x7f\xff\xff\xff")  # type: ignore[attr-defined]  # the bare stream
            await remote.wait_ended()
            job.start_session(ScriptedAgent("s2", ROOM))  # it goes on, without a remote
            job.shutdown()
            await job.wait()

    play(scenario)


def elsewhere(ends: "list[asyncio.Future[Transport]]") -> Any:
    async def reach(_room: str) -> Transport:
        ours, theirs = socket.socketpair()
        ends.append(asyncio.ensure_future(stream(theirs)))
        return await stream(ours)

    return reach


def test_a_session_in_another_room_has_its_own_host_and_takes_it_along() -> None:
    async def scenario() -> None:
        ends: list[asyncio.Future[Transport]] = []
        async with working(elsewhere=elsewhere(ends)) as (job, remote):
            here, there = ScriptedAgent("s1", ROOM), ScriptedAgent("s2", "room-2")
            job.start_session(here)
            job.start_session(there)
            assert await job.host_of(here) is job.host
            assert await job.host_of(there) is not job.host
            away = RemoteSession(await ends[0])
            assert (await away.agent_info()).id == "s2"
            with pytest.raises(RequestFailed, match="belongs to a session"):
                await away.finalize_simulation(Verdict())
            there.end(EndCause.ERROR, "gone")
            assert await away.wait_told() == SessionClosed(CloseReason.ERROR, "gone")
            await away.wait_ended()
            assert (await remote.agent_info()).id == "s1"
            assert remote.closed is None
            await away.close()

    play(scenario)


def test_a_session_that_has_ended_is_not_started() -> None:
    async def scenario() -> None:
        async with working() as (job, _):
            agent = ScriptedAgent("s1", ROOM)
            agent.end(EndCause.ERROR)
            with pytest.raises(SessionOver, match="Fix: make a new session"):
                job.start_session(agent)
            assert job.host.session is None
            job.start_session(ScriptedAgent("s1", ROOM))

    play(scenario)


@pytest.mark.parametrize("ends", [False, True])
def test_a_session_that_its_owner_had_registered_is_the_jobs_all_the_same(ends: bool) -> None:
    """Its owner hears of that, and its end is waited for as of any other one."""

    async def scenario() -> None:
        async with working(session_end_timeout_s=10 * SOON_S) as (job, remote):
            agent = ScriptedAgent("s1", ROOM)
            job.host.register_session(agent)
            with pytest.raises(AlreadyRegistered):
                job.start_session(agent)
            if ends:
                agent.end(EndCause.JOB_SHUTDOWN)
            job.shutdown()
            async with asyncio.timeout(SOON_S):
                await job.wait()
            assert [body async for body in remote.events()] == [SessionClosed(CloseReason.JOB_SHUTDOWN)]

    play(scenario)


def test_a_session_that_ends_before_its_own_host_is_made_is_told_of_by_it() -> None:
    async def scenario() -> None:
        ends: list[asyncio.Future[Transport]] = []
        async with working(elsewhere=elsewhere(ends)) as (job, _):
            there = ScriptedAgent("s2", "room-2")
            job.start_session(there)
            there.end(EndCause.TASK_COMPLETED)
            await until(lambda: ends, "its host is made")
            away = RemoteSession(await ends[0])
            assert await away.wait_told() == SessionClosed(CloseReason.COMPLETED)
            await away.wait_ended()
            await away.close()

    play(scenario)


def test_a_room_that_cannot_be_reached_leaves_its_session_without_a_host() -> None:
    async def scenario() -> None:
        async with working() as (job, remote):
            there = ScriptedAgent("s2", "room-2")
            job.start_session(there)
            with pytest.raises(ConnectionError, match="no way to room room-2"):
                await job.host_of(there)
            there.end(EndCause.TASK_COMPLETED)
            with pytest.raises(RequestFailed, match="no active session"):
                await remote.ping()

    play(scenario)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_a_verdict_behind_what_nobody_reads_does_not_hold_up_the_shutdown(carrier: Carrier) -> None:
    async def scenario() -> None:
        async with carrier.pair() as (ours, theirs):
            job = Job(ROOM, ours, simulated=True, on_simulation_end=good, drain_s=0.05)
            agent = ScriptedAgent("s1", ROOM)
            job.start_session(agent)
            stop_reading(theirs)
            for _ in range(40):
                agent.tell(ErrorTold("x" * 500_000))
            theirs.put(Request("1", FinalizeSimulation()))
            job.shutdown()
            async with asyncio.timeout(SOON_S):
                await job.wait()
            theirs.abort()

    play(scenario)


def test_a_verdict_that_is_none_is_an_error_of_the_simulators_request_and_counts_as_undeliverable() -> None:
    async def agree(_provisional: Verdict) -> Verdict:
        return True  # type: ignore[return-value]  # as of code that nobody checks

    async def scenario() -> None:
        async with working(simulated=True, on_simulation_end=agree) as (job, remote):
            with pytest.raises(RequestFailed, match="user_verdict cannot be True"):
                await remote.finalize_simulation(Verdict(), timeout_s=SOON_S)
            job.shutdown()
            await job.wait()
            assert not job.verdict_taken

    play(scenario)


@pytest.mark.parametrize("raised", [RuntimeError("no database"), asyncio.CancelledError("no database")])
def test_what_the_users_verdict_raises_is_the_answer(raised: BaseException) -> None:
    async def fail(_provisional: Verdict) -> Verdict:
        raise raised

    async def scenario() -> None:
        async with working(simulated=True, on_simulation_end=fail) as (_, remote):
            with pytest.raises(RequestFailed, match="on_simulation_end failed: no database"):
                await remote.finalize_simulation(Verdict(), timeout_s=SOON_S)

    play(scenario)


class Failing(ScriptedAgent):
    """One whose close breaks, once it has closed."""

    async def close(self, cause: EndCause, error: str | None = None) -> None:
        await super().close(cause, error)
        raise OSError("no disk")


@pytest.mark.parametrize("simulated", [False, True])
def test_what_the_user_gave_to_be_called_may_raise_and_the_job_ends(simulated: bool) -> None:
    def fail(room: str) -> None:
        raise ConnectionError(f"no way to delete {room}")

    async def scenario() -> None:
        notes: list[Note] = []
        async with working(simulated=simulated, delete_room=fail, note=notes.append) as (job, remote):
            job.start_session(Failing("s1", ROOM))
            job.start_session(ScriptedAgent("s2", "room-2"))
            job.delete_room(ROOM)
            await remote.finalize_simulation(Verdict()) if simulated else job.shutdown()
            async with asyncio.timeout(SOON_S):
                await job.wait()
        failed = {note.fields["what"]: note.fields["error"] for note in notes if note.event is Audit.FAILED}
        assert failed == {
            "delete_room": "no way to delete room-1",
            "close of s1": "no disk",
            "way to room-2": "This job has no way to room room-2.",
        }

    play(scenario)


@pytest.mark.parametrize("simulated", [False, True])
def test_a_room_is_deleted_once_on_either_path(simulated: bool) -> None:
    deleted: list[str] = []

    async def scenario() -> None:
        async with working(simulated=simulated, on_simulation_end=good, delete_room=deleted.append) as (job, remote):
            job.start_session(ScriptedAgent("s1", ROOM))
            job.delete_room(ROOM, CloseReason.COMPLETED)
            assert deleted == ([] if simulated else [ROOM])
            if simulated:
                assert (await remote.wait_told()).reason is CloseReason.COMPLETED
                assert await remote.finalize_simulation(Verdict()) == GOOD
                assert deleted == []
            job.delete_room(ROOM)
            job.shutdown()
            await job.wait()
            assert deleted == [ROOM]

    play(scenario)
