"""Timeouts, probe delays and bounds, against tcpi_rto and ip-sysctl's figures."""

import pytest

from lab.core.kernel import KernelSettings
from lab.core.rto import initial_rto_s, loss_probe_s, model_timeout_s


@pytest.mark.parametrize(
    ("retries", "bound_s"), [(0, 0.2), (3, 3.0), (5, 12.6), (6, 25.4), (8, 102.2), (9, 204.6), (10, 324.6), (15, 924.6)]
)
def test_bounds_with_linux_defaults(retries: int, bound_s: float) -> None:
    assert model_timeout_s(retries, 120.0) == bound_s


@pytest.mark.parametrize(
    ("retries", "rto_max_s", "bound_s"),
    [(15, 1.0, 14.4), (10, 30.0, 141.0), (15, 5.0, 61.2), (8, 1.0, 7.4), (2, 1.0, 1.4)],
)
def test_bounds_are_linear_past_rto_max(retries: int, rto_max_s: float, bound_s: float) -> None:
    assert model_timeout_s(retries, rto_max_s) == bound_s


@pytest.mark.parametrize(("retries", "bound_s"), [(1, 3.0), (2, 7.0), (6, 127.0)])
def test_bounds_of_a_syn_have_a_base_of_one_second(retries: int, bound_s: float) -> None:
    assert model_timeout_s(retries, 120.0, 1.0) == bound_s


@pytest.mark.parametrize(
    ("rto_min_us", "rto_s"), [(200_000, 0.204), (5000, 0.012), (10_000, 0.016), (40_000, 0.044), (300_000, 0.304)]
)
def test_the_timeout_of_a_short_path_is_what_the_kernel_reports(rto_min_us: int, rto_s: float) -> None:
    assert initial_rto_s(KernelSettings(rto_min_us=rto_min_us), 0.0001) == pytest.approx(rto_s)


def test_the_timeout_never_exceeds_its_maximum() -> None:
    assert initial_rto_s(KernelSettings(rto_max_ms=1000), 0.92, 0.5) == 1.0


def test_one_segment_waits_for_a_delayed_acknowledgment_before_the_probe() -> None:
    assert loss_probe_s(KernelSettings(), 0.204, 0.0001, 1) == pytest.approx(0.204)
    assert loss_probe_s(KernelSettings(), 0.204, 0.0001, 2) == pytest.approx(0.004)


def test_the_probe_never_comes_after_the_timeout() -> None:
    assert loss_probe_s(KernelSettings(), 0.25, 0.05, 1) == 0.25


@pytest.mark.parametrize("settings", [KernelSettings(early_retrans=0), KernelSettings(sack=False)])
def test_some_settings_have_no_probe(settings: KernelSettings) -> None:
    assert loss_probe_s(settings, 0.204, 0.0, 1) is None
