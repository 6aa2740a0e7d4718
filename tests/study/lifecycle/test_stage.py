import asyncio
import gc
import time

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB
from lab.study.lifecycle import servers
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.stage import Attempt, Stage, left
from tests.study.lifecycle.scenes import DEADLINE_S, HURRIED


def test_a_connection_that_no_server_tells_of_is_an_invalid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.study.lifecycle.stage.SEEN_S", 0.05)

    async def scenario() -> None:
        async with servers.running([HURRIED]) as up:
            up[0].book.lives.append(Life(1, time.monotonic()))
            with pytest.raises(InvalidRun, match="did not tell of the connection"):
                await Stage(up[0], LAB).seen([Attempt(1, time.monotonic())])

    asyncio.run(scenario())


def test_what_is_left_holds_neither_session_nor_service_and_says_when_that_went() -> None:
    async def scenario() -> None:
        async with servers.running([HURRIED]) as up:
            found = left(*await Stage(up[0], LAB).opened())
            assert found.said == [False]
            async with asyncio.timeout(DEADLINE_S):
                while found.gone_at is None:
                    gc.collect()
                    await asyncio.sleep(0.01)

            assert found.service is not None
            assert found.service() is None
            assert found.gone_at >= found.at

    asyncio.run(scenario())
