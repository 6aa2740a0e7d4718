"""The model against figures measured on Linux 6.18 (three namespaces, hole in the router, HZ 250)."""

from typing import Any

import pytest

from lab.core.giveup import predict
from lab.core.kernel import KernelSettings
from lab.core.prediction import Cause, GiveUp, Situation
from lab.core.socket import SocketOptions

KEEPALIVE_10_5_3 = {
    "keepalive": True,
    "keepalive_idle_s": 10,
    "keepalive_interval_s": 5,
    "keepalive_count": 3,
}


def case(measured_s: float, cause: Cause, *, packets: int | None = None, **given: Any) -> Any:
    """One measured row: its time, what decided, copies sent where they were counted, and the situation."""
    settings = KernelSettings(**given.pop("settings", {}))
    options = SocketOptions(**given.pop("options", {}))
    situation = Situation(settings=settings, options=options, **given)
    return pytest.param(situation, measured_s, cause, packets, id=f"{situation.state.value}-{measured_s}")


BUSY = [
    case(6.86, Cause.RETRIES2, packets=5, settings={"retries2": 3}),
    case(6.709, Cause.RETRIES2, packets=5, settings={"retries2": 3}),
    case(13.351, Cause.RETRIES2, packets=6, settings={"retries2": 5}),
    case(13.419, Cause.RETRIES2, packets=6, settings={"retries2": 5}),
    case(26.7, Cause.RETRIES2, settings={"retries2": 6}),
    case(106.866, Cause.RETRIES2, packets=9, settings={"retries2": 8}),
    case(107.6, Cause.RETRIES2, settings={"retries2": 8}),
    case(137.120, Cause.RETRIES2, packets=13, settings={"retries2": 8, "rto_min_us": 10_000}),
    case(137.3, Cause.RETRIES2, settings={"retries2": 8, "rto_min_us": 10_000}),
    case(938.463, Cause.RETRIES2, packets=16),
    case(62.977, Cause.RETRIES2, packets=16, settings={"rto_max_ms": 5000}),
    case(63.1, Cause.RETRIES2, settings={"rto_max_ms": 5000}),
    case(14.988, Cause.RETRIES2, packets=16, settings={"rto_max_ms": 1000}),
    case(14.919, Cause.RETRIES2, packets=20, settings={"rto_max_ms": 1000, "rto_min_us": 5000}),
    case(145.628, Cause.RETRIES2, packets=11, settings={"retries2": 10, "rto_max_ms": 30_000}),
    case(146.5, Cause.RETRIES2, packets=11, settings={"retries2": 10, "rto_max_ms": 30_000}),
    case(6.627, Cause.RETRIES2, packets=5, segments=2, settings={"retries2": 3}),
    case(6.608, Cause.RETRIES2, packets=5, segments=5, settings={"retries2": 3}),
    case(6.464, Cause.RETRIES2, packets=4, segments=60, probe_sends_new_data=True, settings={"retries2": 3}),
    case(6.450, Cause.RETRIES2, packets=4, settings={"retries2": 3, "early_retrans": 0}),
    case(6.434, Cause.RETRIES2, packets=4, settings={"retries2": 3, "sack": False}),
    case(20.435, Cause.USER_TIMEOUT, packets=7, options={"user_timeout_s": 20}),
    case(20.56, Cause.USER_TIMEOUT, options={"user_timeout_s": 20}),
    case(30.420, Cause.USER_TIMEOUT, packets=8, options={"user_timeout_s": 30}),
    case(30.63, Cause.USER_TIMEOUT, options={"user_timeout_s": 30}),
    case(0.522, Cause.USER_TIMEOUT, packets=2, options={"user_timeout_s": 0.1}),
    case(1.437, Cause.USER_TIMEOUT, packets=3, options={"user_timeout_s": 1}),
    case(5.613, Cause.USER_TIMEOUT, packets=5, options={"user_timeout_s": 5}),
]


@pytest.mark.parametrize(("situation", "measured_s", "cause", "copies"), BUSY)
def test_busy_connection_dies_inside_the_window(
    situation: Situation, measured_s: float, cause: Cause, copies: int | None
) -> None:
    assert_holds(predict(situation), measured_s, cause, copies)


def assert_holds(prediction: GiveUp, measured_s: float, cause: Cause, copies: int | None) -> None:
    assert prediction.cause is cause
    assert prediction.window_s is not None
    low, high = prediction.window_s
    assert low <= measured_s <= high
    if copies is not None:
        assert copies in range(prediction.copies[0], (prediction.copies[1] or 0) + 1)
