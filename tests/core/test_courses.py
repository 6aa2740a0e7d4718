"""A walk through every phase of the wheel gives the extremes, and a typical course."""

import pytest

from lab.core.courses import Course, Start, all_courses, all_courses_of, check_length, summarise
from lab.core.errors import UsageError
from lab.core.prediction import CopyKind


def two_waits(start: Start) -> Course:
    """One copy after 51 jiffies, death 816 later."""
    copy = start.fires_at(start.tick, 51)
    return Course((copy - start.tick,), start.fires_at(copy, 816) - start.tick)


def test_windows_are_the_extremes_over_all_phases() -> None:
    windows = summarise(all_courses_of(two_waits), lambda _: CopyKind.TIMEOUT_COPY, 250)
    assert windows.copies == (1, 1)
    # 52 jiffies, at most one of them before the anchor; a handler one tick late.
    assert windows.copy_times[0].window_s == (51 / 250, 53 / 250)
    assert windows.window_s == ((52 + 817 - 1) / 250, (53 + 816 + 64 + 1) / 250)
    assert windows.window_s[0] < windows.give_up_s < windows.window_s[1]


def test_every_phase_is_tried_in_every_disturbance() -> None:
    seen: list[Start] = []

    def walk(start: Start) -> list[Course]:
        seen.append(start)
        return [Course((), 1)]

    courses = all_courses(walk, 64)
    assert len(set(seen)) == len(courses.every) == 6 * 64
    assert len(courses.typical) == 64
    assert courses.stride == 1


def test_candidates_are_told_apart_by_their_copies() -> None:
    courses = all_courses(lambda start: [Course((5,) * (1 + start.tick % 2), 10 + start.tick)], 8)
    windows = summarise(courses, lambda _: CopyKind.TIMEOUT_COPY, 250)
    assert [candidate.copies for candidate in windows.candidates] == [1, 2]
    assert windows.copies == (1, 2)


def test_long_periods_are_sampled_with_windows_that_cover_the_rest() -> None:
    courses = all_courses(lambda start: [Course((), 1000 + start.tick)], 8**5)
    windows = summarise(courses, lambda _: CopyKind.TIMEOUT_COPY, 1)
    assert len(courses.typical) <= 1024
    assert windows.window_s[0] <= 1000
    assert windows.window_s[1] >= 1000 + 8**5 - 1


def test_a_walk_without_end_is_stopped() -> None:
    check_length([0] * 20_000)
    with pytest.raises(UsageError):
        check_length([0] * 20_001)
