"""Wakes a machine when it wants to be woken."""

import asyncio
from collections.abc import Callable


class Alarm:
    """One instant of the running loop's clock, and whom to wake then.

    Args:
        wake: Called at the instant, with it.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._at: float | None = None
        self._handle: asyncio.Handle | None = None

    def set(self, at: float | None) -> None:
        """Wake then, and not when it was planned before; None for not at all."""
        if at == self._at:
            return
        self.stop()
        self._at = at
        if at is not None:
            self._handle = self._loop.call_at(at, self._ring)

    def stop(self) -> None:
        """Wake no more."""
        if self._handle is not None:
            self._handle.cancel()
        self._at = self._handle = None

    def _ring(self) -> None:
        # Where the loop stood still, what came meanwhile is read first.
        self._handle = self._loop.call_soon(self._wake_now)

    def _wake_now(self) -> None:
        self._at = self._handle = None
        self._wake()
