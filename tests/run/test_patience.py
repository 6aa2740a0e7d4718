"""Waiting for a condition, with a deadline and a way out."""

import pytest

from lab.run.patience import Stopped
from tests.run.fakes import Clock, Wake


def test_what_is_found_at_once_takes_no_time() -> None:
    clock = Clock()

    assert clock.patience().until(lambda: "found", 5.0) == "found"
    assert clock.now == 100.0


def test_a_condition_is_looked_for_until_it_holds() -> None:
    clock = Clock()
    found: list[str] = []
    clock.at.append((101.0, lambda: found.append("it")))

    assert clock.patience().until(lambda: found[0] if found else None, 5.0) == "it"
    assert clock.now == pytest.approx(101.0, abs=0.03)


def test_zero_and_false_are_findings_too() -> None:
    assert Clock().patience().until(lambda: 0, 5.0) == 0


def test_the_last_look_comes_at_the_deadline() -> None:
    clock = Clock()
    looks: list[float] = []

    assert clock.patience().until(lambda: looks.append(clock.now), 1.0) is None
    assert looks[-1] == pytest.approx(101.0)


def test_an_instant_that_is_over_is_not_waited_for() -> None:
    clock = Clock()
    clock.patience().pause_until(99.0)

    assert clock.now == 100.0


def test_a_pause_ends_at_the_instant_that_somebody_wakes_it() -> None:
    clock = Clock()
    wake = Wake(clock)
    clock.at.append((103.3, wake.set))
    clock.patience().pause(60.0, wake)

    assert clock.now == pytest.approx(103.3)


def test_a_pause_that_nobody_wakes_takes_its_time() -> None:
    clock = Clock()
    clock.patience().pause(2.1, Wake(clock))

    assert clock.now == pytest.approx(102.1)


def test_a_stop_ends_a_pause_that_waits_to_be_woken() -> None:
    clock = Clock()
    clock.at.append((100.5, clock.set))

    with pytest.raises(Stopped):
        clock.patience().pause(60.0, Wake(clock))
    assert clock.now < 101.0


def test_a_stop_ends_every_wait() -> None:
    clock = Clock()
    clock.at.append((100.5, clock.set))

    with pytest.raises(Stopped):
        clock.patience().until(lambda: None, 60.0)
    assert clock.now < 101.0
    with pytest.raises(Stopped):
        clock.patience().pause(1.0)
