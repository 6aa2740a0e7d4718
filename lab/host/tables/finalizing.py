"""The end of a simulation: who is served how long after a shutdown, with what verdict, and when the room goes."""

import asyncio

from lab.host.machine.reasons import EndCause
from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol.messages import CloseReason, FinalizeSimulation, SessionClosed, Verdict
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.simulator import Simulation, simulate
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import REQUEST_S, ROOM, SESSION_END_S, SOON_S, Carrier, Stage, staged

USERS = Verdict(True, "the slot is booked")
OWN = Verdict(False, "the agent hung up")
TURNS = ("book it", "goodbye", "are you there?")
SCRIPT = {"book it": "It is booked.", "goodbye": "Goodbye."}


async def finalizing(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    cut_short, dropped, released = (VARIANTS[name] for name in ("shutdown at once", "finalize dropped", "released"))
    thrown, waited = VARIANTS["room deleted at once"], VARIANTS["lost verdict waited for"]
    at_once = [
        await _hangs_up(carrier, REPAIRED, USERS),
        await _hangs_up(carrier, REPAIRED, None),
        *[await _hangs_up(carrier, variant, USERS) for variant in (cut_short, released)],
        await _users_code_fails(carrier),
        *[await _deletes(carrier, variant) for variant in (REPAIRED, thrown)],
        await _undeliverable(carrier, REPAIRED),
        await _leaves(carrier),
        await _after_shutdown(carrier),
        await _deletes_unsimulated(carrier),
    ]
    # These wait for something that does not come, and may do so together.
    waiting = (_hangs_up(carrier, dropped, USERS), _undeliverable(carrier, waited), _says_nothing(carrier))
    return [*at_once, *await asyncio.gather(*waiting)]


def _row(
    carrier: Carrier, variant: Variant, case: str, seen: str, after_s: float | None, *, right: bool, defective: bool
) -> Row:
    return Row(Question.FINALIZING, case, variant.name, carrier.name, seen, after_s, right, defective)


async def _call(stage: Stage) -> Simulation:
    """A call that the agent ends; its job is shut down by that."""
    agent = ScriptedAgent("s1", ROOM, SCRIPT, hangs_up_after="goodbye")
    stage.job.start_session(agent)
    shutting = asyncio.ensure_future(_shut_down_at_end(stage, agent))
    async with asyncio.timeout(SOON_S):
        simulation = await simulate(stage.remote, TURNS, lambda _heard: OWN, timeout_s=REQUEST_S)
        await shutting
    return simulation


async def _shut_down_at_end(stage: Stage, agent: ScriptedAgent) -> None:
    while agent.ending is None:
        await asyncio.sleep(0.001)
    stage.job.shutdown()


async def _hangs_up(carrier: Carrier, variant: Variant, verdict: Verdict | None) -> Row:
    async with staged(carrier, variant, simulated=True, verdict=verdict) as stage:
        simulation = await _call(stage)
        told = isinstance(simulation.closed, SessionClosed)
        right = simulation.error == "" and simulation.verdict == verdict and told and stage.judged == [OWN]
        seen = simulation.error or ("no verdict, and answered" if verdict is None else f"verdict: {verdict.reason}")
    defective = not (variant.serves_simulator and variant.answers_finalize)
    case = "the agent hangs up first" + ("" if verdict else ", the user has no verdict")
    return _row(carrier, variant, case, seen, simulation.asked_s, right=right, defective=defective)


async def _users_code_fails(carrier: Carrier) -> Row:
    async def fail(_provisional: Verdict) -> Verdict | None:
        raise RuntimeError("no database")

    async with staged(carrier, simulated=True, on_simulation_end=fail) as stage:
        simulation = await _call(stage)
        await stage.done()
    right = "no database" in simulation.error and simulation.asked_s < REQUEST_S
    return _row(
        carrier, REPAIRED, "the user's code fails", simulation.error, simulation.asked_s, right=right, defective=False
    )


async def _deletes(carrier: Carrier, variant: Variant) -> Row:
    """The agent's last act deletes the room: that ends the job, and the room goes after the verdict, once."""
    async with staged(carrier, variant, simulated=True, verdict=USERS) as stage:
        agent = ScriptedAgent("s1", ROOM, SCRIPT)
        stage.job.start_session(agent)
        await stage.remote.run_input("book it")
        stage.job.delete_room(ROOM, CloseReason.COMPLETED)
        stage.job.delete_room(ROOM, CloseReason.COMPLETED)
        _, _, took_s = await stage.ask(FinalizeSimulation(OWN.success, OWN.reason))
        stage.job.shutdown()
        await stage.done()
        reason = stage.remote.closed.reason.name if stage.remote.closed is not None else "not told"
        right = (stage.judged, stage.deleted, reason) == ([OWN], [ROOM], CloseReason.COMPLETED.name)
        seen = f"asked for the verdict {len(stage.judged)} times, deleted {len(stage.deleted)} times, {reason}"
    return _row(
        carrier, variant, "the agent deletes the room", seen, took_s, right=right, defective=not variant.defers_deletion
    )


async def _undeliverable(carrier: Carrier, variant: Variant) -> Row:
    """A verdict that cannot be sent ends the wait."""
    async with staged(carrier, variant, simulated=True, verdict=USERS, refusing=True) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM, SCRIPT))
        stage.job.shutdown()
        asking = asyncio.ensure_future(stage.ask(FinalizeSimulation(OWN.success, OWN.reason)))
        took_s = await stage.done()
        await asking
        right = took_s < SESSION_END_S and stage.judged == [OWN]
    seen = "shut down at once" if took_s < SESSION_END_S else "shut down after the time-out"
    return _row(
        carrier, variant, "the verdict cannot be delivered", seen, took_s, right=right,
        defective=not variant.counts_undeliverable,
    )  # fmt: skip


async def _leaves(carrier: Carrier) -> Row:
    async with staged(carrier, simulated=True, verdict=USERS) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        await stage.remote.close()
        took_s = await stage.done()
        right = took_s < SESSION_END_S and stage.judged == [] and stage.deleted == [ROOM]
        seen = f"shut down, deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "the simulator leaves", seen, took_s, right=right, defective=False)


async def _says_nothing(carrier: Carrier) -> Row:
    async with staged(carrier, simulated=True, verdict=USERS) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        took_s = await stage.done()
        right = took_s >= 0.9 * SESSION_END_S and stage.judged == [] and stage.deleted == [ROOM]
        seen = f"shut down after the time-out, deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "the simulator says nothing more", seen, took_s, right=right, defective=False)


async def _after_shutdown(carrier: Carrier) -> Row:
    """Too late is told at once: by the host while it drains, by the transport's end after that."""
    async with staged(carrier, simulated=True, verdict=USERS, session_end_timeout_s=0.0) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        await agent.close(EndCause.USER_INITIATED)
        stage.job.shutdown()
        _, word, took_s = await stage.ask(FinalizeSimulation(OWN.success, OWN.reason))
    right = took_s < REQUEST_S and stage.judged == []
    return _row(carrier, REPAIRED, "finalized after the shutdown", word, took_s, right=right, defective=False)


async def _deletes_unsimulated(carrier: Carrier) -> Row:
    """Without a simulation the room goes at once, and once."""
    async with staged(carrier) as stage:
        stage.job.start_session(ScriptedAgent("s1", ROOM))
        stage.job.delete_room(ROOM)
        stage.job.delete_room(ROOM)
        stage.job.shutdown()
        await stage.done()
        right = stage.deleted == [ROOM]
        seen = f"deleted {len(stage.deleted)} time"
    return _row(carrier, REPAIRED, "a room deleted without a simulation", seen, None, right=right, defective=False)
