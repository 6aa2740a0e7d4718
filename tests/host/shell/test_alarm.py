"""An alarm wakes once, at the instant that was set last."""

import asyncio

from lab.host.shell.alarm import Alarm
from tests.host.shell.pairs import play


def test_it_wakes_at_the_instant_that_was_set_last() -> None:
    async def scenario() -> None:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        alarm = Alarm(woken.set)
        alarm.set(loop.time() + 3600)
        alarm.set(at := loop.time() + 0.01)
        alarm.set(at)
        await woken.wait()
        assert loop.time() >= at - 0.001
        assert alarm._handle is None

    play(scenario)


def test_none_and_stop_wake_nobody() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        alarm = Alarm(lambda: None)
        alarm.set(loop.time() + 3600)
        handle = alarm._handle
        alarm.set(None)
        assert handle is not None
        assert handle.cancelled()
        alarm.set(loop.time() + 3600)
        alarm.stop()
        assert alarm._handle is None

    play(scenario)
