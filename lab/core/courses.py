"""From one timer's rule to windows: walk the rule through every phase of the timer wheel.

A kernel's ticks are regular, but nobody outside knows where in the wheel's period a segment was lost. A *walk* follows
the kernel's rule from one starting tick and gives the course of events; the windows are the extremes over all starting
ticks. Two more things are unknown to the tick: the start lies anywhere within its tick, so that an event can come one
jiffy earlier by the wall clock; and a timer's handler may run one tick late on a busy machine, which moves single
events by a jiffy and can turn a comparison that is closer than that. The second does not add up: the next bucket of
the wheel absorbs it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lab.core.prediction import Candidate, Copy, CopyKind
from lab.core.timerwheel import granularity


class Course(NamedTuple):
    """One way that things may go, in jiffies from the tick of the anchor."""

    copies: tuple[int, ...]
    death: int


class Windows(NamedTuple):
    """All ways together, in seconds."""

    give_up_s: float
    window_s: tuple[float, float]
    copies: tuple[int, int]
    copy_times: tuple[Copy, ...]
    candidates: tuple[Candidate, ...]


Walk = Callable[[int, int], Course]
"""The course from a starting tick, with a number of jiffies by which the kernel's own idea of elapsed time is short."""

_MOST_PHASES = 4096
"""Starting ticks to try: all of them for waits up to 129 s at HZ 250; beyond, evenly spread, with wider windows."""

_SHIFTS = (0, -1, 1)
"""How far a handler's lateness can move a comparison, in jiffies."""


def starts(period: int) -> tuple[list[tuple[int, int]], int]:
    """The starting ticks to try, each with every shift, and how many jiffies lie between them.

    Args:
        period: Of the wheel, in jiffies: the granularity of the longest wait.
    """
    stride = max(1, period // _MOST_PHASES)
    return [(phase, shift) for shift in _SHIFTS for phase in range(0, period, stride)], stride


def all_courses(walk: Walk) -> tuple[list[Course], int]:
    """The courses from every starting tick, and how many jiffies lie between the starting ticks that were tried."""
    courses = [walk(0, 0)]
    period = 0
    while (wanted := granularity(max(_gaps(courses)))) > period:  # waits repeat with the period of their buckets
        period = wanted
        ticks, stride = starts(period)
        courses = [walk(phase, shift) for phase, shift in ticks]
    return courses, stride


def _gaps(courses: Sequence[Course]) -> Iterator[int]:
    for course in courses:
        yield from (later - tick for tick, later in pairwise((0, *course.copies, course.death)))


def summarise(courses: Sequence[Course], stride: int, kinds: Callable[[int], CopyKind], hz: int) -> Windows:
    """Windows of the death and of every copy.

    Args:
        courses: At least one.
        stride: Jiffies between the starting ticks that were tried.
        kinds: The kind of a copy, by its index.
        hz: Jiffies per second.
    """
    median = sorted(courses, key=lambda course: course.death)[len(courses) // 2]
    by_copies: dict[int, list[int]] = {}
    for course in courses:
        by_copies.setdefault(len(course.copies), []).append(course.death)

    def window(ticks: Iterable[int]) -> tuple[float, float]:
        ordered = sorted(ticks)
        return max(0.0, ordered[0] - stride) / hz, (ordered[-1] + stride) / hz

    def middle(tick: float) -> float:
        return max(0.0, tick - 0.5) / hz

    copy_times = []
    for index in range(max(by_copies)):
        ticks = [course.copies[index] for course in courses if index < len(course.copies)]
        at = median.copies[index] if index < len(median.copies) else sorted(ticks)[len(ticks) // 2]
        copy_times.append(Copy(kinds(index), middle(at), window(ticks)))
    return Windows(
        give_up_s=middle(median.death),
        window_s=window(course.death for course in courses),
        copies=(min(by_copies), max(by_copies)),
        copy_times=tuple(copy_times),
        candidates=tuple(Candidate(copies, window(deaths)) for copies, deaths in sorted(by_copies.items())),
    )
