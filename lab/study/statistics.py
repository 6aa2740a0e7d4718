"""Intervals, medians and quantiles of a handful or of hundreds of sessions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959964
"""Two-sided 95 % of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where something lies with 95 % confidence."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread."""

    n: int
    low: float
    q05: float
    median: float
    q95: float
    high: float


def wilson(successes: int, n: int, z: float = Z95) -> Interval:
    """Wilson's score interval of a proportion (1927); it stays sensible at 0 and at n of n, where others do not.

    Args:
        successes: How many.
        n: Of how many, at least one.
        z: Quantile of the normal distribution.

    Raises:
        ValueError: there are no trials, or more successes than trials.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is no proportion.")
    share, weight = successes / n, z * z / n
    centre = share + weight / 2
    reach = z * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    # At the ends of the scale rounding would leave a crumb.
    low = 0.0 if successes == 0 else (centre - reach) / (1 + weight)
    high = 1.0 if successes == n else (centre + reach) / (1 + weight)
    return Interval(low, high)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share lies, linear between neighbours (Hyndman and Fan's type 7).

    Raises:
        ValueError: there are no values, or the share is not within 0 and 1.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError(f"{len(values)} values have no quantile {share}.")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float:
    """The one in the middle."""
    return quantile(values, 0.5)


def spread(values: Sequence[float]) -> Spread | None:
    """Extremes and quantiles; None where there are no values."""
    if not values:
        return None
    shares = (0.0, 0.05, 0.5, 0.95, 1.0)
    return Spread(len(values), *(quantile(values, share) for share in shares))


def median_interval(values: Sequence[float]) -> Interval | None:
    """Where the median lies, by order statistics, whatever the distribution; None for fewer than six values.

    The k-th smallest and the k-th largest enclose the median unless fewer than k values lie on one side of it, which is
    a binomial probability; k is the largest for which both together stay at or below 5 %.
    """
    n, ordered = len(values), sorted(values)
    k, below = 0, 0.0
    while (below := below + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return Interval(ordered[k - 1], ordered[n - k]) if k else None
