"""A policy is data that contradicts itself nowhere."""

from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.live.recovery.options import Policy


def test_the_defaults_are_the_studys() -> None:
    policy = Policy()

    assert (policy.window_s, policy.every_s) == (4.0, 1.0)
    assert (policy.fallback, policy.parallel, policy.note, policy.dedupe) == (True, False, True, True)


def test_a_policy_is_read_from_json() -> None:
    read = Policy.of({"window_s": 60, "give_up_s": 60.0, "fallback": False, "max_attempts": 99})

    assert read == Policy(window_s=60.0, give_up_s=60.0, fallback=False, max_attempts=99)
    assert Policy.of({}) == Policy()


@pytest.mark.parametrize(
    "settings",
    [
        {"windows": 1.0},
        {"window_s": "4"},
        {"window_s": True},
        {"fallback": 1},
        {"max_attempts": 2.0},
        {"max_attempts": True},
        {"note": None},
    ],
)
def test_what_a_policy_does_not_have_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        Policy.of(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"every_s": 0.0},
        {"attempt_s": -1.0},
        {"close_wait_s": 0.0},
        {"give_up_s": 0.0, "window_s": 0.0},
        {"window_s": -1.0},
        {"settled_s": -1.0},
        {"every_s": float("nan")},
        {"window_s": 31.0},
        {"max_attempts": 1},
        {"max_attempts": 0, "fallback": False},
    ],
)
def test_numbers_that_contradict_each_other_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Policy(**settings)


def test_a_window_of_no_length_and_a_single_attempt_are_allowed() -> None:
    assert Policy(window_s=0.0, max_attempts=1, fallback=False).max_attempts == 1
