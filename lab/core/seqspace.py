"""TCP sequence space: numbers modulo 2**32 made linear, and sets of intervals of it (RFC 9293 section 3.4)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

_MASK = 0xFFFF_FFFF
_HALF = 0x8000_0000


def unwrap(value: int, near: int) -> int:
    """The linear number that ``value`` stands for, the one closest to ``near``.

    Args:
        value: Sequence or acknowledgment number as in the header, 0 to 2**32 - 1.
        near: A linear number of the same direction, less than 2**31 away.

    Returns:
        An integer without bounds, equal to ``value`` modulo 2**32. It is negative where a segment from before a
        wrap arrives first, which does no harm.
    """
    return near + ((value - near + _HALF) & _MASK) - _HALF


class IntervalSet:
    """Disjoint half-open intervals of linear sequence space, in order.

    Args:
        limit: Most intervals that are kept; beyond it the lowest are forgotten, so that hostile input cannot grow it.
    """

    __slots__ = ("_highs", "_limit", "_lows")

    def __init__(self, limit: int = 1024) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._limit = limit

    def __len__(self) -> int:
        return len(self._lows)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._lows, self._highs, strict=True)

    @property
    def highest(self) -> int | None:
        """Upper end of the highest interval, None where the set is empty."""
        return self._highs[-1] if self._highs else None

    def add(self, low: int, high: int) -> None:
        """Put ``low <= x < high`` in, merging what touches."""
        if low >= high:
            return
        first = bisect_left(self._highs, low)
        last = bisect_right(self._lows, high)
        if first < last:
            low = min(low, self._lows[first])
            high = max(high, self._highs[last - 1])
        self._lows[first:last] = [low]
        self._highs[first:last] = [high]
        if len(self._lows) > self._limit:
            del self._lows[0], self._highs[0]

    def remove(self, low: int, high: int) -> None:
        """Take ``low <= x < high`` out."""
        if low >= high:
            return
        first = bisect_right(self._highs, low)
        last = bisect_left(self._lows, high)
        if first >= last:
            return
        left, right = self._lows[first], self._highs[last - 1]
        kept = [(a, b) for a, b in ((left, low), (high, right)) if a < b]
        self._lows[first:last] = [a for a, _ in kept]
        self._highs[first:last] = [b for _, b in kept]

    def overlap(self, low: int, high: int) -> int:
        """How many numbers of ``low <= x < high`` are in the set."""
        total = 0
        for n in range(bisect_right(self._highs, low), len(self._lows)):
            if self._lows[n] >= high:
                break
            total += min(high, self._highs[n]) - max(low, self._lows[n])
        return total

    def drop_below(self, low: int) -> None:
        """Forget everything below ``low``."""
        if self._lows and self._lows[0] < low:
            self.remove(self._lows[0], low)
