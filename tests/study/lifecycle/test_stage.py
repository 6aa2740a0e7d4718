import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LAB
from lab.live.lifecycle.endings import ClosedHere
from lab.live.lifecycle.stream import Stream
from lab.study.lifecycle import servers
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.stage import Attempt, Reading, Stage, left
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


def ended(reading: Reading) -> bool:
    return reading.ended_at is not None


def play(scene: Callable[[Stream[Any], Reading], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S):
            stream: Stream[Any] = Stream()
            reading = Reading(stream)
            stream.put("unread")
            await reading.begin()
            await scene(stream, reading)

    asyncio.run(scenario())


def test_a_reader_that_waits_ends_with_its_stream() -> None:
    async def scene(stream: Stream[Any], reading: Reading) -> None:
        assert not ended(reading)
        stream.finish()
        while not ended(reading):
            await asyncio.sleep(0)
        await reading.stop()

    play(scene)


def test_an_error_is_no_normal_end() -> None:
    async def scene(stream: Stream[Any], reading: Reading) -> None:
        stream.fail(lambda: ClosedHere("closed"))
        while not reading.failed:
            await asyncio.sleep(0)
        assert reading.ended_at is None

    play(scene)


def test_a_reader_can_be_stopped() -> None:
    async def scene(stream: Stream[Any], reading: Reading) -> None:
        await reading.stop()
        stream.finish()
        await asyncio.sleep(0)
        assert reading.ended_at is None

    play(scene)
