"""How late an event loop serves its timers: what a busy machine does to every session in it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

EVERY_S = 0.05
TOLD_S = 0.1
"""A lateness above this is told at once: whatever was due then came later by it."""

KEPT = 12_000
"""Ten minutes of looks."""


class Lateness:
    """Looks at the loop twenty times a second.

    Args:
        tell: Given every lateness that is worth a word, seconds.
    """

    def __init__(self, tell: Callable[[float], object] = lambda _: None) -> None:
        self._tell = tell
        self._late: deque[float] = deque(maxlen=KEPT)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look."""
        due = asyncio.get_running_loop().time() + EVERY_S
        self._timer = asyncio.get_running_loop().call_at(due, self._look, due)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def reset(self) -> None:
        """Forget what was seen."""
        self._late.clear()

    def _look(self, due: float) -> None:
        late_s = time.monotonic() - due
        self._late.append(late_s)
        if late_s > TOLD_S:
            self._tell(late_s)
        self.start()

    def figures(self) -> dict[str, float | int | None]:
        """Median, 99th percentile and maximum, seconds, and of how many looks."""
        late = sorted(self._late)

        def at(share: float) -> float | None:
            return late[min(int(share * len(late)), len(late) - 1)] if late else None

        return {"looks": len(late), "p50_s": at(0.5), "p99_s": at(0.99), "max_s": at(1.0)}
