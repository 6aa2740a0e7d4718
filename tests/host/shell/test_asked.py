"""Each request is answered once, by the code that was asked last in its name."""

import asyncio

import pytest

from lab.host.protocol.messages import Answer, Ask, Ping, Pong, RunInput
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.asked import Asked
from tests.host.shell.leaping import play

Told = list[tuple[str, Answer | None, str | None]]


class Stubborn(ScriptedAgent):
    """Goes on for five seconds, whoever stops it."""

    async def answer(self, ask: Ask) -> Answer:
        if isinstance(ask, RunInput):
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                await asyncio.sleep(5.0)
        return await super().answer(ask)


def test_what_a_session_answers_or_raises_is_told() -> None:
    async def scenario() -> None:
        told: Told = []
        asked = Asked(lambda *answer: told.append(answer))
        agent = ScriptedAgent("s1", "room")
        asked.ask(agent, "1", Ping())
        await asked.join(by=None)
        asked.ask(agent, "2", None)  # type: ignore[arg-type]  # what it does not know
        await asked.join(by=None)
        assert told == [("1", Pong(), None), ("2", None, "A session does not answer NoneType.")]

    assert play(scenario) == []


@pytest.mark.parametrize("again", [False, True])
def test_code_that_goes_on_after_it_was_stopped_answers_nothing(again: bool) -> None:
    """Nor another request that has the id meanwhile."""

    async def scenario() -> None:
        told: Told = []
        asked = Asked(lambda *answer: told.append(answer))
        agent = Stubborn("s1", "room")
        asked.ask(agent, "1", RunInput("book it"))
        await asyncio.sleep(0)
        asked.forget("1")
        asked.forget("1")
        if again:
            asked.ask(agent, "1", Ping())
        await asked.join(by=2.0)
        assert asyncio.get_running_loop().time() == pytest.approx(2.0)
        await asked.join(by=None)
        assert asyncio.get_running_loop().time() == pytest.approx(5.0)
        assert told == ([("1", Pong(), None)] if again else [])

    assert play(scenario) == []
