"""Waiting for a condition with a deadline, and giving up when somebody says stop."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

STEP_S = 0.02
"""Between two looks; a look costs an agent some 0.2 ms, so thirty runs at once stay cheap."""


STOP_S = 0.25
"""How late a stop may be heard by a wait that something else can end too."""


class Stopped(Exception):
    """Somebody asked the run to end early."""


class Patience:
    """Waits on behalf of one run.

    Args:
        stop: Set by another thread to end every wait of the run.
        now: CLOCK_MONOTONIC by default; tests pass their own.
    """

    def __init__(self, stop: threading.Event | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stop = stop or threading.Event()
        self.now = now

    def until(self, look: Callable[[], Found | None], timeout_s: float, *, step_s: float = STEP_S) -> Found | None:
        """What ``look`` found first, or None when the time is over.

        Raises:
            Stopped: the run was asked to end.
        """
        deadline = self.now() + timeout_s
        while True:
            found = look()
            if found is not None:
                return found
            left = deadline - self.now()
            if left <= 0:
                return None
            self.pause(min(step_s, left))

    def pause(self, seconds: float, wake: threading.Event | None = None) -> None:
        """Let time pass.

        Args:
            seconds: How long at most.
            wake: Ends the pause as soon as it is set; whoever waits clears it.

        Raises:
            Stopped: the run was asked to end.
        """
        if wake is None:
            if self._stop.wait(max(seconds, 0.0)):
                raise Stopped
            return
        until = self.now() + seconds
        while not self._stop.is_set():
            left = until - self.now()
            if wake.wait(min(max(left, 0.0), STOP_S)) or left <= STOP_S:
                return
        raise Stopped

    def pause_until(self, instant: float) -> None:
        """Let time pass up to an instant of the clock; returns at once when it is over already."""
        self.pause(instant - self.now())
