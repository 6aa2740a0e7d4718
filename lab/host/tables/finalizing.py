"""The end of a simulation: who is served how long after a shutdown, with what verdict, and when the room goes."""

import asyncio

from lab.host.machine.commands import Outcome
from lab.host.machine.host import CLOSING
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.remote import TRANSPORT_CLOSED
from lab.host.machine.states import HostState
from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol.messages import CloseReason, EventBody, FinalizeSimulation, SessionClosed, Verdict
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.job import Job
from lab.host.shell.session import Session
from lab.host.shell.simulator import Simulation, simulate
from lab.host.shell.transport import Transport
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import ROOM, SOON_S, Carrier, Stage, staged
from lab.host.tables.transports import Holding

USERS = Verdict(True, "the slot is booked")
OWN = Verdict(False, "the agent hung up")
TURNS = ("book it", "goodbye", "are you there?")
SCRIPT = {"book it": "It is booked.", "goodbye": "Goodbye."}

ENDED = frozenset({CLOSING, TRANSPORT_CLOSED})
"""What a request is told that comes too late: by a host that drains, or by the end of its transport."""

HANGS_UP, DELETES = "the agent hangs up first", "the agent deletes the room"
"""Cases that a defect is about."""


async def finalizing(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    cut_short, dropped, released = (VARIANTS[name] for name in ("shutdown at once", "finalize dropped", "released"))
    thrown = VARIANTS["room deleted at once"]
    at_once = [
        await hangs_up(carrier, REPAIRED, USERS),
        await hangs_up(carrier, REPAIRED, None),
        *[await hangs_up(carrier, variant, USERS) for variant in (cut_short, released)],
        await users_code_fails(carrier),
        *[await deletes(carrier, variant) for variant in (REPAIRED, thrown)],
        await leaves(carrier),
        await while_draining(carrier),
        await after_shutdown(carrier),
        await deletes_unsimulated(carrier),
    ]
    # These wait for something that does not come, and may do so together.
    waiting = (hangs_up(carrier, dropped, USERS), says_nothing(carrier))
    return [*at_once, *await asyncio.gather(*waiting)]


def _row(
    carrier: Carrier, variant: Variant, case: str, seen: str, after_s: float | None, *, right: bool,
    defective: bool = False, shows: bool = False,
) -> Row:  # fmt: skip
    return Row(Question.FINALIZING, case, variant.name, carrier.name, seen, after_s, right, defective, shows)


async def _call(stage: Stage) -> Simulation:
    """A call that the agent ends; its job is shut down by that."""
    agent = ScriptedAgent("s1", ROOM, SCRIPT, hangs_up_after="goodbye")
    stage.job.start_session(agent)
    agent.listen(_ShutDown(stage.job))
    async with asyncio.timeout(SOON_S):
        return await simulate(stage.remote, TURNS, lambda _heard: OWN, timeout_s=stage.request_s)


class _ShutDown:
    """Shuts a job down as its session ends, before anybody else can do a thing about that."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def happened(self, session: Session, body: EventBody) -> None:
        """See ``Listener``."""

    def closed(self, session: Session, ending: Ending) -> None:  # noqa: ARG002 -- the listener's port has them
        """See ``Listener``."""
        self._job.shutdown()


async def hangs_up(carrier: Carrier, variant: Variant, verdict: Verdict | None) -> Row:
    """The agent ends the call, and the simulator asks after that; a defective host drops that, or is gone."""
    # So long that a request times out before its transport goes.
    late_s = carrier.request_s + SOON_S
    async with staged(carrier, variant, simulated=True, verdict=verdict, session_end_timeout_s=late_s) as stage:
        simulation = await _call(stage)
        told = isinstance(simulation.closed, SessionClosed)
        answered = simulation.error == "" and simulation.verdict == verdict
        right = answered and told and stage.judged == [OWN] and carrier.at_once(simulation.asked_s)
        unjudged = stage.judged == [] and told is variant.tells_closed
        seen = simulation.error or ("no verdict, and answered" if verdict is None else f"verdict: {verdict.reason}")
    if variant.serves_simulator:
        shows = simulation.outcome is Outcome.TIMED_OUT and carrier.sat_out(simulation.asked_s, carrier.request_s)
    else:
        shows = simulation.error in ENDED and carrier.at_once(simulation.asked_s)
    return _row(
        carrier, variant, HANGS_UP + ("" if verdict else ", the user has no verdict"), seen, simulation.asked_s,
        right=right, defective=not (variant.serves_simulator and variant.answers_finalize), shows=shows and unjudged,
    )  # fmt: skip


async def users_code_fails(carrier: Carrier) -> Row:
    """The simulator is told what went wrong, at once."""

    async def fail(_provisional: Verdict) -> Verdict | None:
        raise RuntimeError("no database")

    async with staged(carrier, simulated=True, on_simulation_end=fail) as stage:
        simulation = await _call(stage)
        await stage.done()
    right = "no database" in simulation.error and carrier.at_once(simulation.asked_s)
    return _row(carrier, REPAIRED, "the user's code fails", simulation.error, simulation.asked_s, right=right)


async def deletes(carrier: Carrier, variant: Variant) -> Row:
    """The agent's last act deletes the room: that ends the job, and the room goes after the verdict, once.

    With the defect it goes at once, the simulator is thrown out of it, and nobody is asked for a verdict.
    """
    async with staged(carrier, variant, simulated=True, verdict=USERS) as stage:
        agent = ScriptedAgent("s1", ROOM, SCRIPT)
        stage.job.start_session(agent)
        await stage.remote.run_input("book it")
        stage.job.delete_room(ROOM, CloseReason.COMPLETED)
        stage.job.delete_room(ROOM, CloseReason.COMPLETED)
        _, word, took_s = await stage.ask(FinalizeSimulation(OWN.success, OWN.reason))
        stage.job.shutdown()
        await stage.done()
        reason = stage.remote.closed.reason.name if stage.remote.closed is not None else "not told"
        done = (stage.judged, stage.deleted, reason)
        right = done == ([OWN], [ROOM], CloseReason.COMPLETED.name) and carrier.at_once(took_s)
        shows = done == ([], [ROOM], "not told") and word == TRANSPORT_CLOSED and carrier.at_once(took_s)
        seen = f"asked for the verdict {len(stage.judged)} times, deleted {len(stage.deleted)} times, {reason}"
    return _row(
        carrier, variant, DELETES, seen, took_s, right=right, defective=not variant.defers_deletion, shows=shows
    )


async def leaves(carrier: Carrier) -> Row:
    """A simulator that goes is waited for no longer."""
    async with staged(carrier, simulated=True, verdict=USERS) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        await stage.remote.close()
        took_s = await stage.done()
        right = carrier.at_once(took_s) and stage.judged == [] and stage.deleted == [ROOM]
        seen = f"shut down, deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "the simulator leaves", seen, took_s, right=right)


async def says_nothing(carrier: Carrier) -> Row:
    """A simulator that stays and asks nothing is waited for until the time-out."""
    async with staged(carrier, simulated=True, verdict=USERS) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        took_s = await stage.done()
        waited = carrier.sat_out(took_s, carrier.session_end_s)
        right = waited and stage.judged == [] and stage.deleted == [ROOM]
        seen = f"shut down after the time-out, deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "the simulator says nothing more", seen, took_s, right=right)


async def while_draining(carrier: Carrier) -> Row:
    """Too late is told at once by a host that still drains."""
    held: list[Holding] = []

    def hold(ours: Transport) -> Transport:
        held.append(Holding(ours))
        return held[-1]

    async with staged(carrier, simulated=True, verdict=USERS, wrap=hold, session_end_timeout_s=0.0) as stage:
        await _end(stage)
        async with asyncio.timeout(SOON_S):
            while stage.job.host.state is not HostState.DRAINING:
                await asyncio.sleep(0.001)
        _, word, took_s = await stage.ask(FinalizeSimulation(OWN.success, OWN.reason))
        held[0].let.set()
    right = word == CLOSING and carrier.at_once(took_s) and stage.judged == []
    return _row(carrier, REPAIRED, "finalized while the host drains", word, took_s, right=right)


async def after_shutdown(carrier: Carrier) -> Row:
    """Too late is told at once by the transport's end, once there is no host any more."""
    async with staged(carrier, simulated=True, verdict=USERS, session_end_timeout_s=0.0) as stage:
        await _end(stage)
        await stage.done()
        await stage.over()
        _, word, took_s = await stage.ask(FinalizeSimulation(OWN.success, OWN.reason))
    right = word == TRANSPORT_CLOSED and carrier.at_once(took_s) and stage.judged == []
    return _row(carrier, REPAIRED, "finalized after the shutdown", word, took_s, right=right)


async def _end(stage: Stage) -> None:
    """End a session, and the job of it."""
    agent = ScriptedAgent("s1", ROOM)
    stage.job.start_session(agent)
    await agent.close(EndCause.USER_INITIATED)
    stage.job.shutdown()


async def deletes_unsimulated(carrier: Carrier) -> Row:
    """Without a simulation the room goes at once, and once."""
    async with staged(carrier) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        stage.job.delete_room(ROOM)
        stage.job.shutdown()
        await stage.done()
        right = stage.deleted == [ROOM]
        seen = f"deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "a room deleted without a simulation", seen, None, right=right)
