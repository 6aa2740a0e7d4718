"""From one timer's rule to windows: walk the rule through every phase of the timer wheel.

A kernel's ticks are regular, but nobody outside knows where in the wheel's period a segment was lost. A *walk* follows
the kernel's rule from one starting tick and gives the course of events; the windows are the extremes over all starting
ticks. Three more things are unknown:

- where within its tick the start lies: by the wall clock every event can come up to one jiffy earlier;
- whether handlers run in the tick in which their timer fires, or one later, as they do now and then on a busy machine.
  It adds up only over waits so short that the wheel does not round them (``lab.core.timerwheel``);
- which two of those a comparison of times is between: closer than one jiffy it may go either way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lab.core.errors import UsageError
from lab.core.prediction import Candidate, Copy, CopyKind
from lab.core.timerwheel import fires_at, granularity


class Course(NamedTuple):
    """One way that things may go, in jiffies from the tick of the anchor."""

    copies: tuple[int, ...]
    death: int


class Courses(NamedTuple):
    """All ways that things may go."""

    typical: list[Course]
    """Those in which nothing runs late."""

    every: list[Course]
    stride: int
    """Jiffies between the starting ticks that were tried."""


class Windows(NamedTuple):
    """All ways together, in seconds."""

    give_up_s: float
    window_s: tuple[float, float]
    copies: tuple[int, int]
    copy_times: tuple[Copy, ...]
    candidates: tuple[Candidate, ...]


def check_length(copies: Sequence[int]) -> None:
    """Stop a walk that goes on for longer than a prediction is worth.

    Raises:
        UsageError: there are more copies than that.
    """
    if len(copies) > _MOST_COPIES:
        raise UsageError(f"These settings send more than {_MOST_COPIES} copies before the end; that is not predicted.")


class Start(NamedTuple):
    """What a walk starts from, in jiffies."""

    tick: int
    """Tick of the anchor, from the start of the wheel's period."""

    lag: int
    """By how much every handler runs late."""

    shift: int
    """By how much the time that the kernel believes to have elapsed is short."""

    def fires_at(self, now: int, wait: int) -> int:
        """The tick at which the handler runs of a timer armed at tick ``now``."""
        return fires_at(now, wait) + self.lag


Walk = Callable[[Start], Course]
"""The course from a start."""

_MOST_COPIES = 20_000
"""The longest user timeout that a socket takes, 24.8 days, makes 17,900 at a wait of 120 s."""

_MOST_STEPS = 400_000
"""Waits to follow in all; where a course is long, fewer starting ticks are tried."""

_MOST_PHASES = 1024
"""Starting ticks to try: all of them for waits up to 129 s at HZ 250; beyond, evenly spread, with wider windows."""


def all_courses(walks: Callable[[Start], Iterable[Course]], period: int) -> Courses:
    """The courses from every start.

    Args:
        walks: One course or several from a start.
        period: Of the wheel, in jiffies: the granularity of the longest wait.
    """
    length = 1 + max(len(course.copies) for course in walks(Start(0, 0, 0)))
    stride = max(1, period // _MOST_PHASES, period * length // _MOST_STEPS)
    typical, *disturbed = (
        [course for tick in range(0, period, stride) for course in walks(Start(tick, lag, shift))]
        for lag in (0, 1)
        for shift in (0, -1, 1)
    )
    return Courses(typical, [*typical, *(course for some in disturbed for course in some)], stride)


def all_courses_of(walk: Walk) -> Courses:
    """The courses from every start of a walk, over the period that its longest wait shows."""
    courses = all_courses(lambda start: (walk(start),), 1)
    period = 1
    while (wanted := granularity(max(_gaps(courses.every)))) > period:
        period = wanted
        courses = all_courses(lambda start: (walk(start),), period)
    return courses


def _gaps(courses: Sequence[Course]) -> Iterator[int]:
    for course in courses:
        yield from (later - tick for tick, later in pairwise((0, *course.copies, course.death)))


def summarise(courses: Courses, kinds: Callable[[int], CopyKind], hz: int) -> Windows:
    """Windows of the death and of every copy.

    Args:
        courses: All that may happen.
        kinds: The kind of a copy, by its index.
        hz: Jiffies per second.
    """
    typical, every, stride = courses
    by_copies: dict[int, list[int]] = {}
    for course in every:
        by_copies.setdefault(len(course.copies), []).append(course.death)

    def window(ticks: Iterable[int]) -> tuple[float, float]:
        ordered = sorted(ticks)
        return max(0.0, ordered[0] - stride) / hz, (ordered[-1] + stride - 1) / hz

    def middle(ticks: Iterable[int]) -> float:
        # Half a tick: the anchor lies anywhere within its own.
        ordered = sorted(ticks)
        return max(0.0, ordered[len(ordered) // 2] - 0.5) / hz

    copy_times = []
    for index in range(max(by_copies)):
        ticks = [course.copies[index] for course in every if index < len(course.copies)]
        usual = [course.copies[index] for course in typical if index < len(course.copies)]
        copy_times.append(Copy(kinds(index), middle(usual or ticks), window(ticks)))
    return Windows(
        give_up_s=middle(course.death for course in typical),
        window_s=window(course.death for course in every),
        copies=(min(by_copies), max(by_copies)),
        copy_times=tuple(copy_times),
        candidates=tuple(Candidate(copies, window(deaths)) for copies, deaths in sorted(by_copies.items())),
    )
