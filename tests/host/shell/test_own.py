"""A session's own host: who waits for it is told what came of it, and is not taken for cancelled."""

import asyncio

import pytest

from lab.host.machine.commands import Audit, Note
from lab.host.machine.host import DRAIN_S
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.states import HostState
from lab.host.protocol.messages import CloseReason, Event, SessionClosed
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.job import Job
from lab.host.shell.own import Elsewhere
from tests.host.shell.leaping import Slow, play

NEVER_S = 1e6


def away(elsewhere: Elsewhere, notes: list[Note]) -> tuple[Job, ScriptedAgent]:
    """A job with a session in another room."""
    job = Job("room-1", Slow(), elsewhere=elsewhere, note=notes.append)
    there = ScriptedAgent("s2", "room-2")
    job.start_session(there)
    return job, there


async def nowhere_yet(_room: str) -> Slow:
    await asyncio.sleep(NEVER_S)
    return Slow()


def test_who_waits_for_a_host_that_is_given_up_is_told_so() -> None:
    async def scenario() -> None:
        job, there = away(nowhere_yet, [])
        waiting = asyncio.ensure_future(job.host_of(there))
        await asyncio.sleep(0)
        job.shutdown()
        with pytest.raises(ConnectionError, match=r"The way to room room-2 was not found in time\."):
            await waiting
        assert asyncio.get_running_loop().time() == pytest.approx(DRAIN_S)
        await job.wait()

    assert play(scenario) == []


def test_who_waits_can_be_cancelled_all_the_same_and_the_host_goes_on_being_made() -> None:
    async def scenario() -> None:
        found = asyncio.Event()

        async def elsewhere(_room: str) -> Slow:
            await found.wait()
            return Slow()

        job, there = away(elsewhere, [])
        waiting = asyncio.ensure_future(job.host_of(there))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        found.set()
        assert (await job.host_of(there)).session is there
        job.shutdown()
        await job.wait()

    assert play(scenario) == []


def test_a_way_whose_finder_cancels_itself_is_told_of_and_written_down() -> None:
    async def elsewhere(_room: str) -> Slow:
        raise asyncio.CancelledError("no route")

    async def scenario() -> None:
        notes: list[Note] = []
        job, there = away(elsewhere, notes)
        with pytest.raises(ConnectionError, match=r"The way to room room-2 was not found: no route"):
            await job.host_of(there)
        assert [note.fields["what"] for note in notes if note.event is Audit.FAILED] == ["way to room-2"]
        job.shutdown()
        await job.wait()

    assert play(scenario) == []


class Lingering(ScriptedAgent):
    """One that has ended a second before it tells that."""

    async def close(self, cause: EndCause, error: str | None = None) -> None:
        self._ending = ending = Ending(cause, error)
        await asyncio.sleep(1.0)
        self._each(lambda listener: listener.closed(self, ending))


def test_a_session_that_has_ended_and_not_told_it_yet_when_its_host_is_made_is_told_of_by_that() -> None:
    async def scenario() -> None:
        far = Slow()

        async def elsewhere(_room: str) -> Slow:
            await asyncio.sleep(0.5)
            return far

        job = Job("room-1", Slow(), elsewhere=elsewhere)
        there = Lingering("s2", "room-2")
        job.start_session(there)
        await asyncio.sleep(0)
        job.shutdown()
        host = await job.host_of(there)
        await job.wait()
        assert far.taken == [Event(SessionClosed(CloseReason.JOB_SHUTDOWN))]
        assert host.state is HostState.CLOSED

    assert play(scenario) == []
