"""How the end of a session is told: with its reason and error, behind its last event, before the transport goes."""

import asyncio

from lab.host.machine.host import SESSION_OVER
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol.codec import Codec
from lab.host.protocol.messages import (
    AgentFalseInterruption,
    ErrorTold,
    Ping,
    RunInput,
    SessionClosed,
    UserInputTranscribed,
)
from lab.host.shell.agent import ScriptedAgent
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import REQUEST_S, ROOM, SOON_S, Carrier, staged

ENDINGS = (
    *(Ending(cause) for cause in EndCause if cause is not EndCause.ERROR),
    Ending(EndCause.ERROR, "the model's service is not there"),
    Ending("a later version's word"),
)
"""Every reason that can be told, the unknown one too."""

BEHIND = 200
"""Events that are queued when a session ends."""


async def closing(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    silent, kept, released = VARIANTS["no session_closed"], VARIANTS["closed session kept"], VARIANTS["released"]
    rows = [await _told(carrier, variant, ending) for ending in ENDINGS for variant in (REPAIRED, silent, released)]
    rows += [await _in_order(carrier, variant) for variant in (REPAIRED, silent)]
    rows += [await _waiting(carrier, variant) for variant in (REPAIRED, kept)]
    return [*rows, await _old_remote(carrier), await _twice(carrier)]


async def _told(carrier: Carrier, variant: Variant, ending: Ending) -> Row:
    async with staged(carrier, variant) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.tell(AgentFalseInterruption(resumed=True))
        began = asyncio.get_running_loop().time()
        agent.end(ending.cause, ending.error)
        stage.job.shutdown()
        await stage.over()
        after_s = asyncio.get_running_loop().time() - began
        wanted = [AgentFalseInterruption(resumed=True), SessionClosed(ending.reason, ending.error)]
        right = stage.events == wanted
        seen = _word(stage.remote.closed)
    return Row(
        Question.CLOSING, f"ended by {ending.cause}", variant.name, carrier.name, seen, after_s, right,
        not variant.tells_closed,
    )  # fmt: skip


async def _in_order(carrier: Carrier, variant: Variant) -> Row:
    """All that is queued is written before the transport goes, the end last."""
    async with staged(carrier, variant) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        said = [UserInputTranscribed(f"{number} " + 1000 * "x") for number in range(BEHIND)]
        for body in said:
            agent.tell(body)
        agent.end(EndCause.TASK_COMPLETED)
        stage.job.shutdown()
        await stage.over()
        right = stage.events[:-1] == said and isinstance(stage.events[-1], SessionClosed)
        seen = f"{len(stage.events)} events, the last one {type(stage.events[-1]).__name__}"
    return Row(
        Question.CLOSING, f"ended behind {BEHIND} queued events", variant.name, carrier.name, seen, None, right,
        not variant.tells_closed,
    )  # fmt: skip


async def _waiting(carrier: Carrier, variant: Variant) -> Row:
    """A request that a session has when it ends is answered, not left to its time-out."""
    async with staged(carrier, variant) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.ready.clear()
        asking = asyncio.ensure_future(stage.ask(RunInput("are you there?")))
        async with asyncio.timeout(SOON_S):
            while len(stage.events) < 2:  # the agent thinks, and has heard it
                await asyncio.sleep(0.001)
        agent.end(EndCause.PARTICIPANT_DISCONNECTED)
        _, word, took_s = await asking
    right = word == SESSION_OVER and took_s < REQUEST_S
    return Row(
        Question.CLOSING, "ended while a request waits", variant.name, carrier.name, word, took_s, right,
        not variant.detaches_closed,
    )  # fmt: skip


async def _old_remote(carrier: Carrier) -> Row:
    """A remote that does not know the event ignores it, and goes on."""
    async with staged(carrier, codec=Codec(session_closed=False)) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.end(EndCause.USER_INITIATED)
        stage.job.start_session(ScriptedAgent("s2", ROOM))
        answer, word, took_s = await stage.ask(Ping())
        right = answer is not None and stage.events == []
    seen = f"no event; {word}"
    return Row(Question.CLOSING, "an old remote", REPAIRED.name, carrier.name, seen, took_s, right, False)


async def _twice(carrier: Carrier) -> Row:
    async with staged(carrier) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.end(EndCause.ERROR, "the first")
        agent.end(EndCause.USER_INITIATED, "the second")
        stage.job.host.closed(agent, Ending(EndCause.USER_INITIATED, "the second"))
        stage.job.shutdown()
        await stage.over()
        ends = [body for body in stage.events if isinstance(body, SessionClosed | ErrorTold)]
        right = len(ends) == 1 and stage.remote.closed is not None and stage.remote.closed.error == "the first"
    seen = f"told {len(ends)} time"
    return Row(Question.CLOSING, "closed twice", REPAIRED.name, carrier.name, seen, None, right, False)


def _word(told: SessionClosed | None) -> str:
    if told is None:
        return "not told"
    return told.reason.name + (f": {told.error}" if told.error else "")
