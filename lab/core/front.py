"""A timer's walk from many starting ticks at once.

Whatever the tick at which a segment was lost, a timer fires at multiples of its bucket's width: after one wait of the
wheel's level ``n`` there are only ``period / 8**n`` ticks at which it can be, and starts that are at the same tick
share all that follows. So starts are followed in *runs* of neighbours, of which a few dozen are left after two waits,
and the result is that of following each start alone.

Two things make that exact. The tick of any event never falls when the start grows, so that the time elapsed from an
earlier event to a shared tick never grows along a run; and a wait that depends on that elapsed time grows with it as
little as the wheel's rounding does. What differs within a run is therefore found by halving it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lab.core.timerwheel import fires_at, granularity

Run = tuple[int, int, int, bool]
"""Starts from the first up to, not including, the second; their tick; whether it moves along with the start.

The tick of one that moves is that of a start at 0. A plain tuple: forecasts make them by the thousand."""


class _Step(NamedTuple):
    """One wait of a front."""

    wait: int | None
    """None where it depended on elapsed time."""

    now: list[Run]
    """Where it led; never changed."""

    highest: int
    gap: int


class Moment:
    """An instant in the walks of many starts, which later ones are compared with.

    Args:
        runs: In the order of the starts.
        stride: Jiffies between two starts.
    """

    __slots__ = ("_firsts", "_runs", "_stride", "lowest")

    def __init__(self, runs: Sequence[Run], stride: int) -> None:
        self._runs = runs
        self._stride = stride
        self._firsts = [run[0] for run in runs]
        self.lowest = lowest(runs, stride)
        """Fewest jiffies from a start to it."""

    def tick(self, start: int) -> int:
        """When it is in the walk of one start."""
        _, _, base, moves = self._runs[bisect_right(self._firsts, start) - 1]
        return base + start * self._stride if moves else base


class Front:
    """How far a timer has got, and what it has done so far, for every start.

    Args:
        count: How many starts there are, the first one at tick 0.
        stride: Jiffies between two of them.
        lag: By how much every handler runs late, jiffies.
        shift: By how much the time that the kernel believes to have elapsed is short, jiffies.
        ahead: A front of the same starts and lag that has walked by the same rule: up to its first death, the way is
            the same but for where a shift matters, and is taken over.
    """

    __slots__ = (
        "_ahead",
        "_gap",
        "_now",
        "copies",
        "deaths",
        "highest",
        "lag",
        "longest_gap",
        "shift",
        "stride",
        "trail",
    )  # fmt: skip

    def __init__(self, count: int, stride: int = 1, lag: int = 0, shift: int = 0, ahead: "Front | None" = None) -> None:
        self.stride = stride
        self.lag = lag
        self.shift = shift
        self.copies: list[Sequence[Run]] = []
        """By index, when a copy is sent."""

        self.deaths: dict[int, Sequence[Run]] = {}
        """By the number of copies before, when the socket dies."""

        self.longest_gap = 0
        """The longest time without a copy, jiffies."""

        self.highest = 0
        """Most jiffies from a start to now."""

        self._now: list[Run] = [(0, count, 0, True)]
        self._gap = 0
        self.trail: list[_Step] = []
        """The waits before the first death, and where they led."""

        self._ahead = () if ahead is None else ahead.trail

    @property
    def alive(self) -> bool:
        """Whether the socket still lives, from any start."""
        return bool(self._now)

    def moment(self, before: int = 0) -> Moment:
        """This instant, or one that is so many jiffies earlier."""
        return Moment([(first, end, base - before, moves) for first, end, base, moves in self._now], self.stride)

    def wait(self, wait: int) -> None:
        """The timer is armed, and fires."""
        step = len(self.trail)
        if not self.deaths and step < len(self._ahead) and self._ahead[step].wait == wait:
            self._take(self._ahead[step])
        else:
            self._ahead = ()
            self._arrive([self._fired(run, wait) for run in self._now], wait)

    def wait_within(self, usual: int, limited: Callable[[int], int], since: Moment) -> None:
        """The same where less time may be left than that.

        Args:
            usual: The wait where no limit is near.
            limited: The wait by the time elapsed; it never grows with it.
            since: What elapsed time counts from.
        """
        if limited(self.highest - since.lowest - self.shift) == usual:
            self.wait(usual)
        else:
            self._ahead = ()
            self._arrive([self._fired_within(run, limited, since) for run in self._now], None)

    def copy(self) -> None:
        """Every socket that still lives sends a copy."""
        self._told()
        self.copies.append(self._now)

    def end(self) -> None:
        """Every socket that still lives dies."""
        self._told()
        self._bury(self._now)
        self._now = []

    def end_where(self, kills: Callable[[int], bool], since: Moment) -> None:
        """The sockets die for which enough time has elapsed.

        Args:
            kills: Whether a time elapsed is enough; so is any longer one.
            since: What it counts from.
        """
        if not kills(self.highest - since.lowest - self.shift):
            return
        self._told()
        dead: list[Run] = []
        alive: list[Run] = []
        for first, end, base, moves in self._now:
            spared = self._first_spared((first, end, base, moves), kills, since)
            if spared > first:
                dead.append((first, spared, base, moves))
            if spared < end:
                alive.append((spared, end, base, moves))
        self._bury(dead)
        self._now = alive

    def _bury(self, dead: Sequence[Run]) -> None:
        if dead:
            self.deaths[len(self.copies)] = (*self.deaths.get(len(self.copies), ()), *dead)

    def _told(self) -> None:
        self.longest_gap = max(self.longest_gap, self._gap)

    def _fired(self, run: Run, wait: int) -> list[Run]:
        """Where a run is after a wait."""
        first, end, base, moves = run
        if not moves:
            return [(first, end, fires_at(base, wait) + self.lag, False)]
        spacing, stride = granularity(wait), self.stride
        if spacing == 1:
            return [(first, end, base + wait + 1 + self.lag, True)]
        parts: list[Run] = []
        while first < end:
            fires = fires_at(base + first * stride, wait)
            # Up to the last start whose wait is over before that bucket is.
            beyond = min(end, (fires - base - wait - 1) // stride + 1)
            parts.append((first, beyond, fires + self.lag, False))
            first = beyond
        return parts

    def _fired_within(self, run: Run, limited: Callable[[int], int], since: Moment) -> list[Run]:
        first, end, base, _ = run
        early, late = (limited(self._elapsed(run, start, since)) for start in (first, end - 1))
        if early == late:
            return self._fired(run, early)
        if fires_at(base, early) == fires_at(base, late):
            return [(first, end, fires_at(base, late) + self.lag, False)]
        middle = (first + end) // 2
        halves = ((first, middle, base, False), (middle, end, base, False))
        return [part for half in halves for part in self._fired_within(half, limited, since)]

    def _first_spared(self, run: Run, kills: Callable[[int], bool], since: Moment) -> int:
        """The first start of a run that elapsed time does not kill; all before are killed."""
        low, high = run[:2]
        while low < high:
            middle = (low + high) // 2
            if kills(self._elapsed(run, middle, since)):
                low = middle + 1
            else:
                high = middle
        return low

    def _elapsed(self, run: Run, start: int, since: Moment) -> int:
        _, _, base, moves = run
        now = base + start * self.stride if moves else base
        return now - since.tick(start) - self.shift

    def _take(self, step: "_Step") -> None:
        self._now, self.highest, self._gap = step.now, step.highest, step.gap
        if not self.deaths:
            self.trail.append(step)

    def _arrive(self, parts: Sequence[Sequence[Run]], wait: int | None) -> None:
        """Go on to where each run has got, and join those that have met."""
        joined: list[Run] = []
        end, tick, longest = -1, None, 0
        for (_, _, before, moved), runs in zip(self._now, parts, strict=True):
            for run in runs:
                gap = run[2] - (before + run[0] * self.stride if moved and not run[3] else before)
                longest = max(longest, gap)
                if run[0] == end and run[2] == tick and not run[3]:
                    joined[-1] = (joined[-1][0], run[1], run[2], False)
                else:
                    joined.append(run)
                end, tick = run[1], None if run[3] else run[2]
        most = highest(joined, self.stride)
        # What comes before the first copy counts from the start.
        self._take(_Step(wait, joined, most, longest if self.copies else most))


def lowest(runs: Sequence[Run], stride: int) -> int:
    """Fewest jiffies from a start to its tick."""
    return min([base if moves else base - (end - 1) * stride for _, end, base, moves in runs])


def highest(runs: Sequence[Run], stride: int) -> int:
    """Most jiffies from a start to its tick."""
    return max([base if moves else base - first * stride for first, _, base, moves in runs])


def offsets(runs: Sequence[Run], stride: int) -> list[int]:
    """The jiffies from every start to its tick, in no order."""
    every: list[int] = []
    for first, end, base, moves in runs:
        every += (
            [base] * (end - first) if moves else range(base - (end - 1) * stride, base - first * stride + 1, stride)
        )
    return every
