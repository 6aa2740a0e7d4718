import random

import pytest

from lab.study.statistics import Interval, Spread, median, median_interval, quantile, spread, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (200, 200, 0.9812, 1.0),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_the_wilson_interval_has_its_published_values(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)

    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion_has_no_interval(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no proportion"):
        wilson(successes, n)


def test_a_quantile_lies_between_its_neighbours() -> None:
    assert quantile([4.0, 1.0, 2.0, 3.0], 0.5) == 2.5
    assert quantile([4.0, 1.0], 0.25) == 1.75
    assert median([7.0]) == 7.0
    with pytest.raises(ValueError, match="have no quantile"):
        quantile([], 0.5)


def test_a_spread_has_both_extremes() -> None:
    assert spread(range(101)) == Spread(101, 0, 5, 50, 95, 100)
    assert spread([]) is None


def test_five_values_say_too_little_of_their_median_and_six_their_extremes() -> None:
    assert median_interval(range(5)) is None
    assert median_interval(range(6)) == Interval(0, 5)
    assert median_interval(range(100)) == Interval(39, 60)


def test_the_median_s_interval_holds_it_in_95_of_100_samples() -> None:
    source = random.Random(1)
    found = [median_interval([source.expovariate(1.0) for _ in range(40)]) for _ in range(400)]

    held = sum(1 for each in found if each is not None and each.low <= 0.6931 <= each.high)
    assert held / 400 > 0.93
