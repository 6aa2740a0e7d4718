"""Profiles are data with sources, resolve on kernels without a knob, and unknown keys are named."""

from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.giveup import predict
from lab.core.kernel import KNOBS, LINUX_DEFAULTS
from lab.core.prediction import Situation, State
from lab.core.profiles import (
    FAST,
    KNOWN_SYSCTLS,
    LINUX,
    PROFILES,
    STUDY_SERVER,
    profile_named,
    real_world,
)
from lab.core.socket import SocketOptions

OLD_KERNEL = [sysctl for sysctl in KNOWN_SYSCTLS if sysctl not in {knob.sysctl for knob in KNOBS if knob.since}]
"""What Linux 6.1 has."""


def test_linux_pins_linux_defaults() -> None:
    assert LINUX.settings() == LINUX_DEFAULTS
    assert {pin.sysctl for pin in LINUX.pins} >= {knob.sysctl for knob in KNOBS}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_pin_has_a_source_and_every_profile_the_congestion_control(profile: Any) -> None:
    pins = {pin.sysctl: pin for pin in profile.pins}
    assert all(pin.source and pin.values for pin in profile.pins)
    assert pins["net.ipv4.tcp_congestion_control"].values == ("cubic", "reno")
    assert pins["net.ipv4.tcp_no_metrics_save"].values == ("1",)


@pytest.mark.parametrize("available", [None, OLD_KERNEL], ids=["with the knobs", "without"])
def test_fast_ends_a_busy_connection_within_eight_seconds(available: list[str] | None) -> None:
    window = predict(Situation(settings=FAST.settings(available))).window_s
    assert window is not None
    assert 6.0 < window[0] <= window[1] < 8.0


@pytest.mark.parametrize("state", [state for state in State if state is not State.ESTABLISHED])
@pytest.mark.parametrize("available", [None, OLD_KERNEL], ids=["with the knobs", "without"])
def test_fast_ends_every_state_within_eight_seconds(state: State, available: list[str] | None) -> None:
    window = predict(Situation(state=state, settings=FAST.settings(available))).window_s
    assert window is not None
    assert window[1] < 8.0


def test_fast_ends_an_idle_connection_with_keepalive_within_eight_seconds() -> None:
    situation = Situation(busy=False, settings=FAST.settings(), options=SocketOptions(keepalive=True))
    window = predict(situation).window_s
    assert window is not None
    assert window[1] < 8.0


def test_without_rto_max_fast_falls_back_to_the_count() -> None:
    assert "net.ipv4.tcp_rto_max_ms" not in {pin.sysctl for pin in FAST.resolve(OLD_KERNEL)}
    assert FAST.settings(OLD_KERNEL).retries2 == 3
    assert FAST.unmet(OLD_KERNEL) == ()


def test_without_rto_max_the_study_server_is_unsupported() -> None:
    (pin,) = STUDY_SERVER.unmet(OLD_KERNEL)
    assert pin.sysctl == "net.ipv4.tcp_rto_max_ms"
    assert pin.since == "6.15"


def test_the_study_server_sends_eleven_copies_and_dies_within_what_the_study_saw() -> None:
    prediction = predict(Situation(settings=STUDY_SERVER.settings()))
    assert prediction.copies == (11, 11)
    assert prediction.window_s is not None
    assert 141 <= prediction.window_s[0] <= prediction.window_s[1] <= 150
    assert 114 <= prediction.copy_times[-1].window_s[0] <= prediction.copy_times[-1].window_s[1] <= 118


def test_the_study_server_thirty_times_as_fast_sends_ten_copies_and_dies_within_five_seconds() -> None:
    fast = PROFILES["study-server-fast"]
    prediction = predict(Situation(settings=fast.settings(), rto_s=0.0107))
    assert prediction.copies[0] >= 9
    assert prediction.copies[1] is not None
    assert prediction.copies[1] <= 11
    assert prediction.window_s is not None
    assert 4.4 <= prediction.window_s[0] <= prediction.window_s[1] <= 5.0
    assert {pin.sysctl for pin in fast.unmet(OLD_KERNEL)} >= {"net.ipv4.tcp_rto_max_ms"}


def test_the_real_world_figure_is_that_of_the_defaults() -> None:
    compressed = Situation(settings=FAST.settings(), rto_s=0.204)
    assert real_world(compressed) == predict(Situation())


def test_a_name_nearly_right_is_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean study-server"):
        profile_named("study")
    assert profile_named("fast") is FAST
