"""Session time on asyncio."""

import asyncio
import time
from collections.abc import Callable

from lab.live.timelapse import Lapse, TimeMap


class Clock:
    """Tells session time and waits by it; a lapse that begins during a wait shortens it.

    Args:
        wall: CLOCK_MONOTONIC seconds.
    """

    def __init__(self, wall: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._map = TimeMap()
        self._changed = asyncio.Event()

    def now(self) -> float:
        """Session time, seconds; CLOCK_MONOTONIC until the first lapse."""
        return self._map.session(self._wall())

    def session(self, wall: float) -> float:
        """Session time of an instant of the wall."""
        return self._map.session(wall)

    def wall(self, session: float) -> float:
        """The instant of the wall at which session time is this, as time runs at present."""
        return self._map.wall(session)

    @property
    def factor(self) -> float:
        """Session seconds per second of the wall, at present."""
        return self._map.factor

    def enter(self, lapse: Lapse) -> None:
        """Let time run by another factor from an instant on, and wake who waits.

        Raises:
            ValueError: see ``TimeMap.enter``.
        """
        self._map.enter(lapse)
        self._changed.set()
        self._changed = asyncio.Event()

    async def sleep_until(self, at: float) -> None:
        """Wait until session time is ``at``."""
        while (left_s := self._map.wall(at) - self._wall()) > 0:
            changed = self._changed
            try:
                async with asyncio.timeout(left_s):
                    await changed.wait()
            except TimeoutError:
                if self.now() >= at:
                    return

    async def sleep(self, session_s: float) -> None:
        """Wait for so much session time."""
        await self.sleep_until(self.now() + session_s)
