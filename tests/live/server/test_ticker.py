"""The sessions are woken when they asked for it, also where that changes or time does."""

import asyncio
import time

from lab.live.clock import Clock
from lab.live.server.ticker import Ticker
from lab.live.timelapse import Lapse


class Sleeper:
    """Wants to be woken at an instant, once."""

    def __init__(self, clock: Clock) -> None:
        self.at: float | None = None
        self.woken: list[float] = []
        self.clock = clock
        self.done = asyncio.Event()

    def wake(self) -> None:
        self.woken.append(self.clock.now())
        self.at = None
        self.done.set()


def test_who_asked_is_woken_once_and_not_before() -> None:
    async def scenario() -> None:
        clock = Clock()
        sleeper = Sleeper(clock)
        ticker = Ticker(clock, lambda: sleeper.at, sleeper.wake)
        ticker.set()
        sleeper.at = at = clock.now() + 0.05
        ticker.set()
        ticker.set()
        await asyncio.wait_for(sleeper.done.wait(), 5)
        assert len(sleeper.woken) == 1
        assert sleeper.woken[0] >= at - 0.001
        ticker.stop()

    asyncio.run(scenario())


def test_a_lapse_and_an_earlier_wish_both_count() -> None:
    async def scenario() -> None:
        clock = Clock()
        sleeper = Sleeper(clock)
        ticker = Ticker(clock, lambda: sleeper.at, sleeper.wake)
        sleeper.at = clock.now() + 3600
        ticker.set()
        clock.enter(Lapse(time.monotonic(), 100_000))
        ticker.set()
        await asyncio.wait_for(sleeper.done.wait(), 5)
        sleeper.at = clock.now() + 1e9
        ticker.set()
        sleeper.at = clock.now()
        sleeper.done.clear()
        ticker.set()
        await asyncio.wait_for(sleeper.done.wait(), 5)
        sleeper.at = clock.now() + 1
        ticker.set()
        ticker.stop()
        assert len(sleeper.woken) == 2

    asyncio.run(scenario())
