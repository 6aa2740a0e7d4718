"""The capture of a controller: started beside everything else, looked after, read while it goes on.

A packet that was lost an hour ago is nothing to a cut of now: the kernel's counters are read twice a second, so that a
fault knows what had been lost when its time began.
"""

import collections
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from lab.control.refusals import NoCapture
from lab.control.router import ControlledRouter
from lab.core.errors import LabError
from lab.testbed.ports import CaptureSummary

LOOK_S = 0.5
"""Between two readings."""

_KEPT = 60


class Recording:
    """One capture; ``run`` is the body of a thread.

    Args:
        router: Captures.
        folder: Gets the files.
        limit_bytes: Per side on disk.
        publish: Told of ``capture-started`` and of ``capture-failed`` with its reason (or None).
    """

    def __init__(
        self,
        router: ControlledRouter,
        folder: Path,
        limit_bytes: int,
        publish: Callable[[str, str | None], object],
    ) -> None:
        self._router = router
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._publish = publish
        self._lost: collections.deque[tuple[float, int]] = collections.deque([(float("-inf"), 0)], maxlen=_KEPT)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.state = "starting"
        """starting, running or failed."""

    def run(self) -> None:
        """Start, and look after it until ``end``."""
        try:
            self._router.start_capture(self._folder, limit_bytes=self._limit_bytes)
            if not self._became("running"):
                self._stop()
            while not self._ended.wait(LOOK_S):
                self.note(self._router.flush_capture())
        except (LabError, OSError) as error:
            self._became("failed", str(error))

    def note(self, summary: CaptureSummary) -> None:
        """Take a reading of the counters."""
        self._lost.append((summary.stopped_at, sum(summary.dropped.values())))

    def lost_up_to(self, instant: float) -> int:
        """What had been lost at the last reading before an instant, CLOCK_MONOTONIC; rather less than more."""
        return max((count for at, count in list(self._lost) if at <= instant), default=0)

    def summary(self) -> CaptureSummary:
        """What there is, everything up to now on disk.

        Raises:
            NoCapture: it does not run (yet).
            LabError: it failed on the way.
        """
        if self.state != "running":
            raise NoCapture(f"Its state is {self.state!r}.", fix="wait until GET /healthz says that it is running")
        return self._router.flush_capture()

    def end(self) -> None:
        """Let ``run`` return, and tell nothing more."""
        with self._lock:
            self._ended.set()

    def stop(self) -> None:
        """Close the files; after ``run`` has returned."""
        if self.state == "running":
            self._stop()

    def _became(self, state: str, reason: str | None = None) -> bool:
        """Tell what became of it, unless it was ended; whether it was not."""
        with self._lock:
            if not self._ended.is_set():
                self.state = state
                self._publish("capture-started" if state == "running" else "capture-failed", reason)
            return not self._ended.is_set()

    def _stop(self) -> None:
        with contextlib.suppress(LabError, TimeoutError):
            self._router.stop_capture()
