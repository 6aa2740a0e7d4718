"""Wakes the sessions when they asked for it, in session time."""

import asyncio
from collections.abc import Callable

from lab.live.clock import Clock


class Ticker:
    """One timer for all sessions.

    Args:
        clock: Session time.
        next_at: When to wake next, session seconds; None for not at all.
        wake: Called then.
    """

    def __init__(self, clock: Clock, next_at: Callable[[], float | None], wake: Callable[[], None]) -> None:
        self._clock = clock
        self._next_at = next_at
        self._wake = wake
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Look anew when to wake: something happened, or time runs differently."""
        at = self._next_at()
        when = None if at is None else self._clock.wall(at)
        if self._timer is not None:
            if when is not None and self._timer.when() == when and not self._timer.cancelled():
                return
            self._timer.cancel()
            self._timer = None
        if when is not None:
            # The loop's clock is CLOCK_MONOTONIC, as the wall of session time is.
            self._timer = asyncio.get_running_loop().call_at(when, self._due)

    def stop(self) -> None:
        """Never wake again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._wake()
