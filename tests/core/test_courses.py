"""A walk through every phase of the wheel gives the extremes, and a typical course."""

import pytest

from lab.core.courses import Course, Start, all_courses, all_courses_of, check_length, summarise
from lab.core.errors import UsageError
from lab.core.front import Front, offsets
from lab.core.prediction import CopyKind


def two_waits(front: Front) -> None:
    """One copy after 51 jiffies, death 816 later."""
    front.wait(51)
    front.copy()
    front.wait(816)
    front.end()


def starts_of(front: Front) -> int:
    return sum(len(offsets(runs, front.stride)) for runs in front.deaths.values())


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
    assert len(set(seen)) == sum(map(starts_of, courses.every)) == 6 * 64
    assert starts_of(courses.typical) == 64
    assert courses.stride == 1


def test_the_period_is_that_of_the_longest_wait_and_of_what_the_wheel_adds_to_it() -> None:
    def just_below_a_level(front: Front) -> None:
        front.wait(63 * 8 - 1)
        front.end()

    assert starts_of(all_courses_of(two_waits).typical) == 64
    assert starts_of(all_courses_of(just_below_a_level).typical) == 64


def test_a_walk_of_many_starts_is_that_of_each_alone() -> None:
    def one(start: Start) -> list[Course]:
        copy = start.fires_at(start.tick, 51)
        return [Course((copy - start.tick,), start.fires_at(copy, 816) - start.tick)]

    together = summarise(all_courses_of(two_waits), lambda _: CopyKind.TIMEOUT_COPY, 250)
    assert together == summarise(all_courses(one, 64), lambda _: CopyKind.TIMEOUT_COPY, 250)


def test_candidates_are_told_apart_by_their_copies() -> None:
    courses = all_courses(lambda start: [Course((5,) * (1 + start.tick % 2), 10 + start.tick)], 8)
    windows = summarise(courses, lambda _: CopyKind.TIMEOUT_COPY, 250)
    assert [candidate.copies for candidate in windows.candidates] == [1, 2]
    assert windows.copies == (1, 2)


def test_long_periods_are_sampled_with_windows_that_cover_the_rest() -> None:
    courses = all_courses(lambda start: [Course((), 1000 + start.tick)], 8**5)
    windows = summarise(courses, lambda _: CopyKind.TIMEOUT_COPY, 1)
    assert starts_of(courses.typical) <= 1024
    assert windows.window_s[0] <= 1000
    assert windows.window_s[1] >= 1000 + 8**5 - 1


def test_a_walk_without_end_is_stopped() -> None:
    check_length([0] * 20_000)
    with pytest.raises(UsageError):
        check_length([0] * 20_001)
