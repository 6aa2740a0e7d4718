"""A line is heard at the instant it comes; one that never comes is the author's mistake, with what came instead."""

import threading

import pytest

from lab.core.errors import UsageError
from lab.run.cue import LOOK_S, Cue
from lab.run.trigger import LineTrigger
from tests.run.fakes import Clock, FakeProcess, Wake


def made(since: float = 0.0, delay_s: float = 0.0, within_s: float = 60.0) -> tuple[Cue, FakeProcess, Clock]:
    clock, process = Clock(), FakeProcess()
    cue = Cue(LineTrigger("client", "^booked", delay_s, within_s), process, Wake(clock), since=since)
    return cue, process, clock


def test_the_line_ends_the_wait_at_its_own_instant() -> None:
    cue, process, clock = made()
    clock.at.append((103.456, lambda: process.say(103.456, "booked BK-1001")))

    assert cue.await_due(clock.patience()) == 103.456
    assert clock.now == pytest.approx(103.456)


def test_what_follows_the_line_comes_so_long_after_it_as_was_asked() -> None:
    cue, process, clock = made(delay_s=0.7)
    clock.at.append((103.0, lambda: process.say(102.9, "booked")))
    cue.await_due(clock.patience())

    assert clock.now == pytest.approx(103.6)


def test_a_line_that_came_before_anybody_waited_counts() -> None:
    process, clock = FakeProcess(), Clock()
    process.say(99.0, "booked early")
    cue = Cue(LineTrigger("client", "booked"), process, threading.Event())

    assert cue.await_due(clock.patience()) == 99.0


def test_a_line_from_before_the_cut_does_not_count_and_the_first_one_after_it_does() -> None:
    cue, process, _ = made(since=100.0)
    for at, text in ((99.0, "booked"), (100.5, "asked"), (101.0, "booked"), (102.0, "booked again")):
        process.say(at, text)

    assert cue.due_at == 101.0


def test_a_line_that_never_comes_is_the_authors_mistake_and_the_last_lines_are_told() -> None:
    cue, process, clock = made(within_s=5.0)
    clock.at.append((101.0, lambda: process.say(101.0, "asked")))

    with pytest.raises(UsageError, match=r"no line with '\^booked' within 5 s. Its last lines: asked"):
        cue.await_due(clock.patience())
    assert clock.now == pytest.approx(105.0, abs=2 * LOOK_S)


def test_a_program_that_has_ended_is_not_waited_for() -> None:
    cue, process, clock = made()
    clock.at.append((101.0, lambda: process.exit(101.0, 3)))

    with pytest.raises(UsageError, match=r"before it ended with status 3\. It printed nothing"):
        cue.await_due(clock.patience())
    assert clock.now < 101.5


def test_the_last_line_of_a_program_that_has_ended_counts() -> None:
    cue, process, _ = made()
    process.say(100.0, "booked")
    process.exit(100.0)

    cue.require(200.0, 100.0)
    assert cue.due_at == 100.0
