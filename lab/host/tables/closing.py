"""How the end of a session is told: with its reason and error, behind its last event, before the transport goes."""

import asyncio

from lab.host.machine.commands import Audit, Outcome
from lab.host.machine.host import DRAIN_S, SESSION_OVER
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol.codec import Codec
from lab.host.protocol.messages import (
    AgentFalseInterruption,
    CloseReason,
    ErrorTold,
    EventBody,
    Ping,
    RunInput,
    SessionClosed,
    UserInputTranscribed,
)
from lab.host.shell.agent import ScriptedAgent
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import ROOM, SOON_S, Carrier, staged

ENDINGS = (
    (Ending(EndCause.JOB_SHUTDOWN), CloseReason.JOB_SHUTDOWN),
    (Ending(EndCause.PARTICIPANT_DISCONNECTED), CloseReason.PARTICIPANT_DISCONNECTED),
    (Ending(EndCause.USER_INITIATED), CloseReason.USER_INITIATED),
    (Ending(EndCause.TASK_COMPLETED), CloseReason.COMPLETED),
    (Ending(EndCause.ERROR, "the model's service is not there"), CloseReason.ERROR),
    (Ending("a later version's word"), CloseReason.UNKNOWN),
)
"""How a session may end, and how that has to be told: the description's words, not the code's."""

LAST = AgentFalseInterruption(resumed=True)
"""What happens last in a session, before its end."""

BEHIND = 200
"""Events that are queued when a session ends."""


async def closing(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    silent, kept, released = VARIANTS["no session_closed"], VARIANTS["closed session kept"], VARIANTS["released"]
    variants = (REPAIRED, silent, released)
    rows = [await told(carrier, variant, *ending) for ending in ENDINGS for variant in variants]
    rows += [await in_order(carrier, variant) for variant in (REPAIRED, silent)]
    rows += [await waiting(carrier, variant) for variant in (REPAIRED, kept)]
    return [*rows, await old_remote(carrier, REPAIRED), await twice(carrier)]


async def told(carrier: Carrier, variant: Variant, ending: Ending, reason: CloseReason) -> Row:
    """A session ends, and its host with it; a defective host tells all but that.

    Args:
        carrier: What is between host and remote.
        variant: The host's.
        ending: How the session ends.
        reason: How that has to be told.
    """
    async with staged(carrier, variant) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.tell(LAST)
        began = asyncio.get_running_loop().time()
        agent.end(ending.cause, ending.error)
        stage.job.shutdown()
        await stage.over()
        after_s = asyncio.get_running_loop().time() - began
        right = stage.events == [LAST, SessionClosed(reason, ending.error)] and after_s < DRAIN_S
        shows = stage.events == [LAST] and stage.remote.closed is None and after_s < DRAIN_S
        seen = _word(stage.remote.closed)
    return Row(
        Question.CLOSING, f"ended by {ending.cause}", variant.name, carrier.name, seen, after_s, right,
        not variant.tells_closed, shows,
    )  # fmt: skip


async def in_order(carrier: Carrier, variant: Variant) -> Row:
    """All that is queued is written before the transport goes, the end last."""
    async with staged(carrier, variant) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        said: list[EventBody] = [UserInputTranscribed(f"{number} " + 1000 * "x") for number in range(BEHIND)]
        for body in said:
            agent.tell(body)
        agent.end(EndCause.TASK_COMPLETED)
        stage.job.shutdown()
        await stage.over()
        right = stage.events == [*said, SessionClosed(CloseReason.COMPLETED)]
        shows = stage.events == said
        last = type(stage.events[-1]).__name__ if stage.events else "nothing"
        seen = f"{len(stage.events)} events, the last one {last}"
    return Row(
        Question.CLOSING, f"ended behind {BEHIND} queued events", variant.name, carrier.name, seen, None, right,
        not variant.tells_closed, shows,
    )  # fmt: skip


async def waiting(carrier: Carrier, variant: Variant) -> Row:
    """A request that a session has when it ends is answered; a defective host leaves it to its time-out."""
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
    right = word == SESSION_OVER and carrier.at_once(took_s)
    shows = word == Outcome.TIMED_OUT.value and carrier.sat_out(took_s, carrier.request_s)
    return Row(
        Question.CLOSING, "ended while a request waits", variant.name, carrier.name, word, took_s, right,
        not variant.detaches_closed, shows,
    )  # fmt: skip


async def old_remote(carrier: Carrier, variant: Variant) -> Row:
    """A remote that is told of the end and does not know that event ignores it, and goes on."""
    async with staged(carrier, variant, codec=Codec(session_closed=False)) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.end(EndCause.USER_INITIATED)
        stage.job.start_session(ScriptedAgent("s2", ROOM))
        answer, word, took_s = await stage.ask(Ping())
        ignored = [note.event for note in stage.notes] == [Audit.IGNORED]
        right = answer is not None and stage.events == [] and ignored
    seen = f"{'ignored' if ignored else 'no event'}; {word}"
    return Row(Question.CLOSING, "an old remote", variant.name, carrier.name, seen, took_s, right, False)


async def twice(carrier: Carrier) -> Row:
    """The first end is told, and no second one."""
    async with staged(carrier) as stage:
        agent = ScriptedAgent("s1", ROOM)
        stage.job.start_session(agent)
        agent.end(EndCause.ERROR, "the first")
        agent.end(EndCause.USER_INITIATED, "the second")
        stage.job.host.closed(agent, Ending(EndCause.USER_INITIATED, "the second"))
        stage.job.shutdown()
        await stage.over()
        ends = [body for body in stage.events if isinstance(body, SessionClosed | ErrorTold)]
        right = ends == [SessionClosed(CloseReason.ERROR, "the first")]
    seen = f"told {len(ends)} time"
    return Row(Question.CLOSING, "closed twice", REPAIRED.name, carrier.name, seen, None, right, False)


def _word(closed: SessionClosed | None) -> str:
    if closed is None:
        return "not told"
    return closed.reason.name + (f": {closed.error}" if closed.error else "")
