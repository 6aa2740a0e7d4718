"""What a capture has lost, by when: a packet that was lost an hour ago is nothing to a cut of now."""

import collections

from lab.testbed.ports import CaptureSummary

LOOK_S = 0.5
"""Between two readings."""

_KEPT = 60


class Drops:
    """The last readings of the kernel's counters."""

    def __init__(self) -> None:
        self._readings: collections.deque[tuple[float, int]] = collections.deque([(float("-inf"), 0)], maxlen=_KEPT)

    def read(self, summary: CaptureSummary) -> None:
        """Take a reading."""
        self._readings.append((summary.stopped_at, sum(summary.dropped.values())))

    def up_to(self, instant: float) -> int:
        """What had been lost at the last reading before an instant, CLOCK_MONOTONIC; rather less than more."""
        return max((count for at, count in self._readings if at <= instant), default=0)
