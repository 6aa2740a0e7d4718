"""The wheel's rounding, against waits measured on Linux 6.18 with HZ 250."""

import pytest

from lab.core.timerwheel import fires_at, granularity, to_jiffies, window_s

HZ_OF_DISTRIBUTIONS = [100, 250, 300, 1000]


@pytest.mark.parametrize(
    ("wait", "spacing"), [(1, 1), (62, 1), (63, 8), (503, 8), (504, 64), (4031, 64), (4032, 512), (32256, 4096)]
)
def test_buckets_get_eight_times_coarser_with_each_level(wait: int, spacing: int) -> None:
    assert granularity(wait) == spacing


@pytest.mark.parametrize(
    ("wait_s", "late_s"), [(0.2, 0.004), (1.0, 0.032), (5.0, 0.256), (30.0, 2.048), (120.0, 2.048)]
)
def test_lateness_at_hz_250(wait_s: float, late_s: float) -> None:
    nominal_s, latest_s = window_s(wait_s)
    assert nominal_s == wait_s
    assert latest_s == pytest.approx(wait_s + late_s)


@pytest.mark.parametrize("hz", HZ_OF_DISTRIBUTIONS)
@pytest.mark.parametrize("wait_s", [0.0002, 0.2, 1.0, 7.3, 120.0])
def test_a_timer_fires_neither_early_nor_later_than_its_bucket(wait_s: float, hz: int) -> None:
    wait = to_jiffies(wait_s, hz)
    for now in range(2 * granularity(wait)):
        assert now + wait < fires_at(now, wait) <= now + wait + granularity(wait)
        assert fires_at(now, wait) % granularity(wait) == 0


def test_after_one_long_wait_the_next_is_no_longer_random() -> None:
    ticks = {fires_at(now, 30_000) for now in range(5000)}
    assert {(fires_at(tick, 30_000) - tick) / 250 for tick in ticks} == {120.832}


@pytest.mark.parametrize(
    ("seconds", "hz", "jiffies"), [(0.20005, 250, 51), (0.2, 250, 50), (0.005, 250, 2), (0.1, 300, 30)]
)
def test_seconds_become_jiffies_rounded_up(seconds: float, hz: int, jiffies: int) -> None:
    assert to_jiffies(seconds, hz) == jiffies
