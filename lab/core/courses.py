"""From one timer's rule to windows: walk the rule through every phase of the timer wheel.

A kernel's ticks are regular, but nobody outside knows where in the wheel's period a segment was lost. A *walk* follows
the kernel's rule from many starting ticks (``lab.core.front``); the windows are the extremes over all of them. Three
more things are unknown:

- where within its tick the start lies: by the wall clock every event can come up to one jiffy earlier;
- whether handlers run in the tick in which their timer fires, or one later, as they do now and then on a busy machine.
  It adds up only over waits so short that the wheel does not round them (``lab.core.timerwheel``);
- which two of those a comparison of times is between: closer than one jiffy it may go either way.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lab.core.errors import UsageError
from lab.core.front import Front, Run, highest, lowest, offsets
from lab.core.prediction import Candidate, Copy, CopyKind
from lab.core.timerwheel import fires_at, granularity


class Course(NamedTuple):
    """One way that things may go, in jiffies from the tick of the anchor."""

    copies: tuple[int, ...]
    death: int


class Courses(NamedTuple):
    """All ways that things may go."""

    typical: Front
    """Those in which nothing runs late."""

    every: Sequence[Front]
    stride: int
    """Jiffies between the starting ticks that were tried."""


class Windows(NamedTuple):
    """All ways together, in seconds."""

    give_up_s: float
    window_s: tuple[float, float]
    copies: tuple[int, int]
    copy_times: tuple[Copy, ...]
    candidates: tuple[Candidate, ...]


def check_length(copies: Sequence[object]) -> None:
    """Stop a walk that goes on for longer than a prediction is worth.

    Raises:
        UsageError: there are more copies than that.
    """
    if len(copies) > _MOST_COPIES:
        raise UsageError(f"These settings send more than {_MOST_COPIES} copies before the end; that is not predicted.")


class Start(NamedTuple):
    """What the walk of a single start begins with, in jiffies."""

    tick: int
    """Tick of the anchor, from the start of the wheel's period."""

    lag: int
    """By how much every handler runs late."""

    shift: int
    """By how much the time that the kernel believes to have elapsed is short."""

    def fires_at(self, now: int, wait: int) -> int:
        """The tick at which the handler runs of a timer armed at tick ``now``."""
        return fires_at(now, wait) + self.lag


Walk = Callable[[Front], None]
"""Takes a front that is at its starts to the death of every socket."""

_Ticks = tuple[Sequence[Run], int]
"""Runs, and the stride of their starts."""

_MOST_COPIES = 20_000
"""The longest user timeout that a socket takes, 24.8 days, makes 17,900 at a wait of 120 s."""

_MOST_STEPS = 400_000
"""Waits to follow in all; where a course is long, fewer starting ticks are tried."""

_MOST_PHASES = 1024
"""Starting ticks to try: all of them for waits up to 129 s at HZ 250; beyond, evenly spread, with wider windows."""

_DISTURBANCES = tuple((lag, shift) for lag in (0, 1) for shift in (0, -1, 1))
"""What may be unknown beside the start; the first is that nothing runs late."""


def all_courses(walks: Callable[[Start], Iterable[Course]], period: int) -> Courses:
    """The courses from every start, each followed alone: for rules with several courses from one start.

    Args:
        walks: One course or several from a start.
        period: Of the wheel, in jiffies: the granularity of the longest wait.
    """
    stride = _stride(period, max(len(course.copies) for course in walks(Start(0, 0, 0))))
    fronts = [
        _front_of(course for tick in range(0, period, stride) for course in walks(Start(tick, lag, shift)))
        for lag, shift in _DISTURBANCES
    ]
    return Courses(fronts[0], fronts, stride)


def all_courses_of(walk: Walk) -> Courses:
    """The courses from every start of a walk, over the period that its longest wait shows."""
    period = 1
    courses = _courses(walk, period, stride=1)
    longest = max(courses.typical.deaths)
    while (wanted := granularity(max(front.longest_gap for front in courses.every))) > period:
        period = wanted
        courses = _courses(walk, period, _stride(period, longest))
    return courses


def _stride(period: int, longest: int) -> int:
    """Jiffies between starts to try, where a course has so many copies."""
    return max(1, period // _MOST_PHASES, period * (1 + longest) // _MOST_STEPS)


def _courses(walk: Walk, period: int, stride: int) -> Courses:
    fronts: list[Front] = []
    for lag, shift in _DISTURBANCES:
        ahead = next((front for front in fronts if front.lag == lag), None)
        fronts.append(Front(len(range(0, period, stride)), stride, lag, shift, ahead))
        walk(fronts[-1])
    return Courses(fronts[0], fronts, stride)


def _front_of(courses: Iterable[Course]) -> Front:
    """What single courses come to; each counts as a start."""
    copies: list[list[Run]] = []
    deaths: dict[int, list[Run]] = {}
    for course in courses:
        for index, tick in enumerate(course.copies):
            if index == len(copies):
                copies.append([])
            copies[index].append((0, 1, tick, True))
        deaths.setdefault(len(course.copies), []).append((0, 1, course.death, True))
    front = Front(0)
    front.copies.extend(copies)
    front.deaths.update(deaths)
    return front


def summarise(courses: Courses, kinds: Callable[[int], CopyKind], hz: int) -> Windows:
    """Windows of the death and of every copy.

    Args:
        courses: All that may happen.
        kinds: The kind of a copy, by its index.
        hz: Jiffies per second.
    """
    typical, every, stride = courses
    by_copies = sorted({copies for front in every for copies in front.deaths})

    def window(ticks: Sequence[_Ticks]) -> tuple[float, float]:
        low, high = min(lowest(*some) for some in ticks), max(highest(*some) for some in ticks)
        return max(0.0, low - stride) / hz, (high + stride - 1) / hz

    def middle(ticks: Sequence[_Ticks]) -> float:
        # Half a tick: the anchor lies anywhere within its own.
        ordered = sorted(offset for some in ticks for offset in offsets(*some))
        return max(0.0, ordered[len(ordered) // 2] - 0.5) / hz

    copy_times = []
    for index in range(by_copies[-1]):
        ticks = _copies(every, index)
        copy_times.append(Copy(kinds(index), middle(_copies([typical], index) or ticks), window(ticks)))
    died = {
        copies: [(front.deaths[copies], front.stride) for front in every if copies in front.deaths]
        for copies in by_copies
    }
    return Windows(
        give_up_s=middle([(runs, typical.stride) for runs in typical.deaths.values()]),
        window_s=window([some for deaths in died.values() for some in deaths]),
        copies=(by_copies[0], by_copies[-1]),
        copy_times=tuple(copy_times),
        candidates=tuple(Candidate(copies, window(deaths)) for copies, deaths in died.items()),
    )


def _copies(fronts: Sequence[Front], index: int) -> list[_Ticks]:
    return [(front.copies[index], front.stride) for front in fronts if index < len(front.copies)]
