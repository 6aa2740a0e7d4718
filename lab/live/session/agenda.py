"""When whom to wake, for many at once: what nobody waits for costs nothing."""

import heapq
from typing import Any

Key = tuple[Any, ...]
"""Who; where two are due at one instant the lesser goes first."""


class Agenda:
    """Instants by key, one each.

    A plan that is put off, as a time-out is with every message, costs nothing until its old instant comes.
    """

    def __init__(self) -> None:
        self._at: dict[Key, float] = {}
        self._queued: dict[Key, float] = {}
        """The entry of the heap that counts for a key: never later than its instant."""
        self._heap: list[tuple[float, Key]] = []

    def put(self, key: Key, at: float | None) -> None:
        """Wake somebody then, and not when it was planned before; None for not at all."""
        if at is None:
            self._at.pop(key, None)
            return
        self._at[key] = at
        queued = self._queued.get(key)
        if queued is None or at < queued:
            self._queue(key, at)

    def next_at(self) -> float | None:
        """The earliest instant."""
        while self._heap:
            at, key = self._heap[0]
            wanted = self._at.get(key)
            if wanted == at and self._queued.get(key) == at:
                return at
            heapq.heappop(self._heap)
            if self._queued.get(key) == at:
                del self._queued[key]
                if wanted is not None:
                    self._queue(key, wanted)
        return None

    def take(self, *, now: float) -> Key | None:
        """The first of those who are due, not planned any more; None where nobody is."""
        at = self.next_at()
        if at is None or at > now:
            return None
        _, key = heapq.heappop(self._heap)
        del self._at[key], self._queued[key]
        return key

    def _queue(self, key: Key, at: float) -> None:
        self._queued[key] = at
        heapq.heappush(self._heap, (at, key))
