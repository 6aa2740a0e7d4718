"""How many runs go on at once: as many as was asked for, and fewer as long as the machine cannot follow.

A run that a busy machine disturbed is repeated, and repeated beside as many others it would be disturbed again. The
number is therefore governed as a sender governs its congestion window (RFC 5681): halved when a run was disturbed, at
most once for all that went on together, and one more for each width of runs that were not.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

FEWEST = 2
"""Runs that may always go on together: one per core of a small machine, so that nothing stands still."""


class Slot:
    """One run's leave to go on."""

    def __init__(self, flight: int) -> None:
        self.flight = flight
        """Which reduction it came after."""

        self.disturbed = False
        """Set it where the run was disturbed, before the slot is given back."""


class SideBySide:
    """Gives slots to runs, from any thread.

    Args:
        most: Runs at once on a machine that follows.
    """

    def __init__(self, most: int) -> None:
        self._most = max(most, 1)
        self._width = float(self._most)
        self._running = 0
        self._flight = 0
        self._over = False
        self._changed = threading.Condition()

    @property
    def width(self) -> int:
        """How many may go on at once now."""
        return int(self._width)

    @contextmanager
    def slot(self) -> Iterator[Slot]:
        """Wait for a place, and hold it; after ``close`` nobody waits any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._running < self.width)
            self._running += 1
            slot = Slot(self._flight)
        try:
            yield slot
        finally:
            with self._changed:
                self._running -= 1
                self._learn(slot)
                self._changed.notify_all()

    def close(self) -> None:
        """Let everybody go on, to be stopped by whoever runs them."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _learn(self, slot: Slot) -> None:
        if not slot.disturbed:
            self._width = min(self._width + 1 / self._width, float(self._most))
        elif slot.flight == self._flight:
            # What began before this reduction may still be disturbed, and says nothing of the new width.
            self._width = max(self._width / 2, float(min(FEWEST, self._most)))
            self._flight += 1
