import asyncio
from collections.abc import Sequence

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB, LiveSession
from lab.study.lifecycle import servers, ways
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.stage import Attempt, Stage
from tests.study.lifecycle.scenes import HURRIED


class Late(Stage):
    """Sees a connection only when its session is set up."""

    def session(self) -> tuple[LiveSession, list[Attempt]]:
        self.made, attempts = super().session()
        return self.made, attempts

    async def seen(self, attempts: Sequence[Attempt]) -> Life:
        while self.made.is_closed:
            await asyncio.sleep(0)
        del self.made
        return await super().seen(attempts)


def test_a_session_that_was_set_up_before_its_release_during_connect_is_an_invalid_run() -> None:
    async def scenario() -> None:
        async with servers.running([HURRIED], setup_s=0.0) as up:
            with pytest.raises(InvalidRun, match="had set the session up"):
                await ways.connecting(Late(up[0], LAB))

    asyncio.run(scenario())


def test_every_path_says_what_is_closed_is_to_be() -> None:
    assert set(ways.SAID) == set(ways.PATHS)
    assert set(ways.PATHS) == {*ways.WAYS, ways.EXIT}
    assert {*ways.HELD, *ways.OPEN_STREAM, *ways.SILENT} <= set(ways.PATHS)
