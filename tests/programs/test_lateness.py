"""A loop that is kept from its timers shows."""

import asyncio
import time

from lab.programs.lateness import Lateness


def test_a_loop_that_was_blocked_is_late() -> None:
    async def scenario() -> None:
        lateness = Lateness()
        assert lateness.figures()["p99_s"] is None
        lateness.start()
        await asyncio.sleep(0.01)
        time.sleep(0.3)
        while lateness.figures()["looks"] == 0:
            await asyncio.sleep(0.01)
        lateness.stop()
        worst = lateness.figures()["max_s"]
        assert worst is not None
        assert 0.2 < worst < 5
        lateness.reset()
        assert lateness.figures()["looks"] == 0

    asyncio.run(scenario())


def test_a_lateness_that_matters_is_told_at_once() -> None:
    async def scenario() -> list[float]:
        told: list[float] = []
        lateness = Lateness(told.append)
        lateness.start()
        await asyncio.sleep(0.01)
        time.sleep(0.3)
        while not told:
            await asyncio.sleep(0.01)
        lateness.stop()
        return told

    assert asyncio.run(scenario())[0] > 0.2
