"""A simulator says its turns, stops when the agent does, and asks for the verdict either way."""

import asyncio
import socket

from lab.host.machine.commands import Outcome
from lab.host.protocol.messages import CloseReason, SessionClosed, Verdict
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.job import Job
from lab.host.shell.remote import RemoteSession
from lab.host.shell.simulator import Simulation, simulate
from tests.host.shell.pairs import play, stream

SCRIPT = {"book it": "It is booked.", "goodbye": "Goodbye."}


def simulated(hangs_up_after: str | None, *, simulated: bool = True) -> tuple[Simulation, list[Verdict]]:
    found: list[Simulation] = []
    judged: list[Verdict] = []

    async def judge(provisional: Verdict) -> Verdict | None:
        judged.append(provisional)
        return Verdict(True, "one booking")

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        job = Job("room", await stream(ours), simulated=simulated, on_simulation_end=judge)
        remote = RemoteSession(await stream(theirs))
        job.start_session(ScriptedAgent("s1", "room", SCRIPT, hangs_up_after=hangs_up_after))
        own = Verdict(False, "not seen")
        found.append(await simulate(remote, ["book it", "goodbye", "hello?"], lambda _heard: own))
        await remote.close()
        job.shutdown()
        async with asyncio.timeout(5):
            await job.wait()

    play(scenario)
    return found[0], judged


def test_all_turns_are_said_to_an_agent_that_stays() -> None:
    simulation, judged = simulated(None)

    assert simulation.heard[:2] == ("It is booked.", "Goodbye.")
    assert len(simulation.heard) == 3
    assert (simulation.closed, simulation.verdict) == (None, Verdict(True, "one booking"))
    assert judged == [Verdict(False, "not seen")]


def test_an_agent_that_hangs_up_ends_the_turns_and_is_judged_all_the_same() -> None:
    simulation, judged = simulated("goodbye")

    assert simulation.heard == ("It is booked.", "Goodbye.")
    assert simulation.closed == SessionClosed(CloseReason.COMPLETED)
    assert simulation.verdict == Verdict(True, "one booking")
    assert len(judged) == 1


def test_an_end_that_is_not_told_is_waited_for_until_the_time_out_and_the_verdict_asked_for_all_the_same() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        job = Job("room", await stream(ours), simulated=True)
        remote = RemoteSession(await stream(theirs))
        job.start_session(ScriptedAgent("s1", "room", SCRIPT))
        found = await simulate(remote, ["book it"], lambda _heard: Verdict(), await_close=True, close_timeout_s=0.01)
        assert (found.closed, found.outcome) == (None, Outcome.ANSWERED)
        await remote.close()
        job.shutdown()
        await job.wait()

    play(scenario)


def test_why_there_is_no_verdict_is_said() -> None:
    simulation, judged = simulated("goodbye", simulated=False)

    assert (simulation.verdict, simulation.outcome) == (None, Outcome.REFUSED)
    assert simulation.error == "the job runs no simulation"
    assert judged == []


def test_the_next_session_of_a_host_is_played_too() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        job = Job("room", await stream(ours), simulated=True)
        remote = RemoteSession(await stream(theirs))
        for name in ("s1", "s2"):
            job.start_session(ScriptedAgent(name, "room", SCRIPT, hangs_up_after="goodbye"))
            found = await simulate(remote, ["book it", "goodbye"], lambda _heard: Verdict(), await_close=True)
            assert found.heard == ("It is booked.", "Goodbye.")
            assert found.closed == SessionClosed(CloseReason.COMPLETED)
        # A third one that nobody has begun: what is known of the second one's end is all there is to wait for.
        found = await simulate(remote, ["book it"], lambda _heard: Verdict(), await_close=True)
        assert found.heard == ()
        await remote.close()
        job.shutdown()
        await job.wait()

    play(scenario)
