"""A host without a session answers; a session that is registered again is used; each request is one session's."""

import asyncio
import contextlib

from lab.host.machine.commands import Outcome
from lab.host.machine.host import NO_SESSION
from lab.host.machine.reasons import EndCause
from lab.host.machine.variant import REPAIRED, VARIANTS, Variant
from lab.host.protocol import messages as m
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import Transport
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import ROOM, SOON_S, Carrier, Stage, staged

ASKS: tuple[m.Ask, ...] = (
    m.Ping(), m.GetChatHistory(), m.RunInput("hello"), m.GetAgentInfo(), m.GetSessionState(), m.GetRtcStats(),
    m.GetSessionUsage(), m.GetFrameworkInfo(), m.UpdateIo(m.IoInput(audio_enabled=False)),
)  # fmt: skip
"""Every request that needs a session."""

CLOSED_SESSION = "answered by the closed session"
REFUSED_TURN = "The session is closed."
"""What a closed session itself says to a turn; to all else it answers."""

BEFORE, AFTER = "before any session", "after it closed"


async def without_session(carrier: Carrier) -> list[Row]:
    """The rows of one carrier."""
    dropped, kept, released = VARIANTS["requests dropped"], VARIANTS["closed session kept"], VARIANTS["released"]
    return [
        *await asked(carrier, REPAIRED, BEFORE),
        *await asked(carrier, dropped, BEFORE),
        *await asked(carrier, REPAIRED, AFTER),
        *await asked(carrier, kept, AFTER),
        *await asked(carrier, released, AFTER),
        await again(carrier, REPAIRED),
        await throughout(carrier),
        await elsewhere(carrier),
    ]


async def asked(carrier: Carrier, variant: Variant, when: str) -> list[Row]:
    """Each request, all at once.

    Args:
        carrier: What is between host and remote.
        variant: The host's.
        when: ``BEFORE`` a session began, or ``AFTER`` it closed.
    """
    closes = when == AFTER
    async with staged(carrier, variant) as stage:
        if closes:
            agent = ScriptedAgent("s1", ROOM)
            stage.job.start_session(agent)
            agent.end(EndCause.USER_INITIATED)
        answers = await asyncio.gather(*(stage.ask(ask) for ask in ASKS))
    defective = not (variant.detaches_closed if closes else variant.answers_without_session)
    return [
        Row(
            Question.WITHOUT_SESSION, f"{type(ask).__name__} {when}", variant.name, carrier.name,
            _word(answer, word), took_s, word == NO_SESSION and carrier.at_once(took_s), defective,
            _by_closed(ask, answer, word) if closes else _dropped(carrier, word, took_s),
        )
        for ask, (answer, word, took_s) in zip(ASKS, answers, strict=True)
    ]  # fmt: skip


def _dropped(carrier: Carrier, word: str, took_s: float) -> bool:
    """The defect of a host that answers nothing without a session."""
    return word == Outcome.TIMED_OUT.value and carrier.sat_out(took_s, carrier.request_s)


def _by_closed(ask: m.Ask, answer: m.Answer | None, word: str) -> bool:
    """The defect of a host that keeps a closed session: that one answers, and its state is none."""
    if isinstance(ask, m.RunInput):
        return word == REFUSED_TURN
    if isinstance(ask, m.GetSessionState):
        return isinstance(answer, m.SessionState) and answer.agent_state.value == 0
    return answer is not None


def _word(answer: m.Answer | None, word: str) -> str:
    if isinstance(answer, m.SessionState):
        return f"{CLOSED_SESSION}: state {answer.agent_state.value}"
    return word if answer is None else CLOSED_SESSION


async def again(carrier: Carrier, variant: Variant) -> Row:
    """A session that takes a closed one's place is used from the next request on."""
    async with staged(carrier, variant) as stage:
        first, second = ScriptedAgent("s1", ROOM), ScriptedAgent("s2", ROOM)
        stage.job.start_session(first)
        before = await _who(stage)
        first.end(EndCause.TASK_COMPLETED)
        between = await _who(stage)
        stage.job.start_session(second)
        seen = f"{before}, {between}, {await _who(stage)}"
    right = seen == f"s1, {NO_SESSION}, s2"
    return Row(Question.WITHOUT_SESSION, "registered again", variant.name, carrier.name, seen, None, right, False)


async def throughout(carrier: Carrier) -> Row:
    """A request that came before its session was replaced is answered by that one."""
    async with staged(carrier) as stage:
        first, second = ScriptedAgent("s1", ROOM, {"who?": "s1"}), ScriptedAgent("s2", ROOM, {"who?": "s2"})
        stage.job.start_session(first)
        first.ready.clear()
        asking = asyncio.ensure_future(stage.ask(m.RunInput("who?")))
        async with asyncio.timeout(SOON_S):
            while len(stage.events) < 2:  # the agent thinks, and has heard it
                await asyncio.sleep(0.001)
        stage.job.start_session(second)
        later, _, _ = await stage.ask(m.RunInput("who?"))
        first.ready.set()
        answer, _, took_s = await asking
        seen = f"{_said(answer)}, then {_said(later)}"
    return Row(
        Question.WITHOUT_SESSION, "replaced while a request waits", REPAIRED.name, carrier.name, seen, took_s,
        seen == "s1, then s2", False,
    )  # fmt: skip


async def elsewhere(carrier: Carrier) -> Row:
    """A session in another room has a host of its own, and the job's remote hears nothing of it."""
    ends: list[Transport] = []

    async def reach(_room: str) -> Transport:
        ours, theirs = await rooms.enter_async_context(carrier.pair())
        ends.append(theirs)
        return ours

    async with contextlib.AsyncExitStack() as rooms, staged(carrier, elsewhere=reach) as stage:
        away = ScriptedAgent("s2", "room-2")
        stage.job.start_session(away)
        await stage.job.host_of(away)
        remote = RemoteSession(ends[0])
        own = await remote.agent_info()
        _, here, _ = await stage.ask(m.Ping())
        away.end(EndCause.TASK_COMPLETED)
        async with asyncio.timeout(SOON_S):
            told = await remote.wait_told()
            await remote.wait_ended()
        await remote.close()
        right = (own.id, here, told.reason, stage.events) == ("s2", NO_SESSION, m.CloseReason.COMPLETED, [])
        seen = f"there {own.id} and {told.reason.name}, here {here}"
    return Row(Question.WITHOUT_SESSION, "in another room", REPAIRED.name, carrier.name, seen, None, right, False)


async def _who(stage: Stage) -> str:
    answer, word, _ = await stage.ask(m.GetAgentInfo())
    return answer.id if isinstance(answer, m.AgentInfo) else word


def _said(answer: m.Answer | None) -> str:
    if not isinstance(answer, m.RunResult) or (last := answer.items[-1].message) is None:
        return "nothing"
    return last.content[0].text
