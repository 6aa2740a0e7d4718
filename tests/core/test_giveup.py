"""The model against figures measured on Linux 6.18 (three namespaces, hole in the router, HZ 250)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.core.errors import UsageError
from lab.core.giveup import predict
from lab.core.kernel import KernelSettings
from lab.core.prediction import Cause, CopyKind, GiveUp, Situation, State
from lab.core.socket import SocketOptions

KEEPALIVE_10_5_3: dict[str, Any] = {
    "keepalive": True,
    "keepalive_idle_s": 10,
    "keepalive_interval_s": 5,
    "keepalive_count": 3,
}


def case(measured_s: float, cause: Cause, *, packets: int | None = None, **about: Any) -> Any:
    """One measured row: its time, what decided, copies sent where they were counted, and the situation."""
    kernel = KernelSettings(**about.pop("settings", {}))
    options = SocketOptions(**about.pop("options", {}))
    situation = Situation(settings=kernel, options=options, **about)
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


OTHERS = [
    # Keepalive: seconds from the last packet received.
    case(25.46, Cause.KEEPALIVE, packets=3, busy=False, options=KEEPALIVE_10_5_3),
    case(25.497, Cause.KEEPALIVE, packets=3, busy=False, options=KEEPALIVE_10_5_3),
    case(15.28, Cause.KEEPALIVE, packets=1, busy=False, options=KEEPALIVE_10_5_3 | {"user_timeout_s": 12}),
    case(15.252, Cause.KEEPALIVE, packets=1, busy=False, options=KEEPALIVE_10_5_3 | {"user_timeout_s": 12}),
    case(40.70, Cause.KEEPALIVE, packets=6, busy=False, options=KEEPALIVE_10_5_3 | {"user_timeout_s": 40}),
    case(40.743, Cause.KEEPALIVE, packets=6, busy=False, options=KEEPALIVE_10_5_3 | {"user_timeout_s": 40}),
    # Zero window, then dark: seconds from the last packet received, with the back-off it found.
    case(4.756, Cause.PROBES, packets=3, state=State.ZERO_WINDOW, backoff=1, rto_s=0.212, settings={"retries2": 3}),
    case(6.912, Cause.PROBES, packets=3, state=State.ZERO_WINDOW, backoff=3, rto_s=0.212, settings={"retries2": 3}),
    case(
        9.216,
        Cause.PROBES,
        packets=8,
        state=State.ZERO_WINDOW,
        backoff=3,
        rto_s=0.212,
        settings={"retries2": 8, "rto_max_ms": 1000},
    ),
    case(1067.200, Cause.PROBES, packets=15, state=State.ZERO_WINDOW, backoff=1, rto_s=0.212),
    case(1306.8, Cause.PROBES, packets=15, state=State.ZERO_WINDOW, backoff=3, rto_s=0.212),
    case(
        1.728,
        Cause.USER_TIMEOUT,
        packets=0,
        state=State.ZERO_WINDOW,
        backoff=3,
        probing_s=1.304,
        rto_s=0.212,
        options={"user_timeout_s": 3},
    ),
    # A drop in the sender's own OUTPUT looks the same to its kernel: seconds from the write.
    case(6.459, Cause.PROBES, packets=4, state=State.ZERO_WINDOW, settings={"retries2": 4}),
    case(5.572, Cause.PROBES, packets=6, state=State.ZERO_WINDOW, settings={"retries2": 6, "rto_max_ms": 1000}),
    # Zero window, peer alive: seconds from the packet that closed the window.
    case(
        20.408,
        Cause.USER_TIMEOUT,
        state=State.ZERO_WINDOW,
        peer_alive=True,
        rto_s=0.212,
        options={"user_timeout_s": 20},
    ),
    case(130.370, Cause.SYN_RETRIES, packets=6, state=State.SYN_SENT, settings={"syn_linear_timeouts": 0}),
    case(130.6, Cause.SYN_RETRIES, packets=6, state=State.SYN_SENT, settings={"syn_linear_timeouts": 0}),
    case(134.812, Cause.SYN_RETRIES, packets=10, state=State.SYN_SENT),
    case(135.1, Cause.SYN_RETRIES, packets=10, state=State.SYN_SENT),
    case(3.05, Cause.SYN_RETRIES, packets=2, state=State.SYN_SENT, settings={"syn_retries": 1}),
    case(3.076, Cause.SYN_RETRIES, packets=2, state=State.SYN_SENT, options={"syn_retries": 1}),
    case(7.14, Cause.SYN_RETRIES, packets=5, state=State.SYN_SENT, settings={"syn_retries": 2}),
    case(7.16, Cause.SYN_RETRIES, packets=6, state=State.SYN_SENT, settings={"rto_max_ms": 1000}),
    case(
        8.328, Cause.SYN_RETRIES, packets=3, state=State.SYN_SENT, settings={"syn_retries": 2, "syn_linear_timeouts": 1}
    ),
    case(8.148, Cause.SYN_RETRIES, packets=6, state=State.SYN_SENT, settings={"syn_retries": 4, "rto_max_ms": 1500}),
    case(3.02, Cause.USER_TIMEOUT, packets=2, state=State.SYN_SENT, options={"user_timeout_s": 3}),
    case(1.036, Cause.USER_TIMEOUT, packets=1, state=State.SYN_SENT, options={"user_timeout_s": 0.5}),
    case(64.532, Cause.SYNACK_RETRIES, packets=5, state=State.SYN_RECEIVED),
    case(64.6, Cause.SYNACK_RETRIES, packets=5, state=State.SYN_RECEIVED),
    case(7.195, Cause.SYNACK_RETRIES, packets=2, state=State.SYN_RECEIVED, settings={"synack_retries": 2}),
    case(
        7.105,
        Cause.SYNACK_RETRIES,
        packets=2,
        state=State.SYN_RECEIVED,
        settings={"synack_retries": 2, "rto_max_ms": 1000},
        options={"user_timeout_s": 1},
    ),
    case(107.163, Cause.ORPHAN_RETRIES, packets=9, state=State.FIN_WAIT_1, segments=2),
    case(106.528, Cause.ORPHAN_RETRIES, packets=9, state=State.LAST_ACK),
    case(106.4, Cause.ORPHAN_RETRIES, packets=9, state=State.LAST_ACK),
    case(2.50, Cause.ORPHAN_RETRIES, packets=4, state=State.FIN_WAIT_1, segments=2, settings={"rto_max_ms": 1000}),
    case(2.710, Cause.ORPHAN_RETRIES, packets=4, state=State.LAST_ACK, settings={"rto_max_ms": 1000}),
    case(5.356, Cause.ORPHAN_RETRIES, packets=5, state=State.LAST_ACK, settings={"rto_max_ms": 2000}),
    case(3.347, Cause.ORPHAN_RETRIES, packets=4, state=State.FIN_WAIT_1, settings={"orphan_retries": 2}),
    case(
        3.512,
        Cause.ORPHAN_RETRIES,
        packets=5,
        state=State.FIN_WAIT_1,
        segments=2,
        settings={"orphan_retries": 3, "rto_max_ms": 1000},
    ),
    case(2.230, Cause.USER_TIMEOUT, packets=4, state=State.FIN_WAIT_1, segments=2, options={"user_timeout_s": 2}),
    case(2.444, Cause.USER_TIMEOUT, packets=4, state=State.LAST_ACK, options={"user_timeout_s": 2}),
    case(61.624, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2),
    case(3.100, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2, settings={"fin_timeout_s": 3}),
    case(5.237, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2, options={"linger2_s": 5}),
    case(10.199, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2, settings={"fin_timeout_s": 65}),
    case(81.676, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2, settings={"fin_timeout_s": 100}),
    case(3.165, Cause.FIN_TIMEOUT, state=State.FIN_WAIT_2, rto_s=0.604, settings={"fin_timeout_s": 61}),
]

ORPHAN_OF_8 = Situation(state=State.FIN_WAIT_1, segments=2, settings=KernelSettings(rto_max_ms=1000, orphan_retries=8))

TWO_TICKS = [
    # A bound near a tick: the same settings, measured twice, died at different ones.
    (
        7.63,
        9,
        ORPHAN_OF_8,
    ),
    (
        8.626,
        10,
        ORPHAN_OF_8,
    ),
    (10.695, 9, Situation(settings=KernelSettings(rto_max_ms=1500, retries2=7))),
    (7.621, 9, Situation(segments=2, settings=KernelSettings(rto_max_ms=1000, retries2=8))),
]

NEVER = [
    Situation(busy=False),
    Situation(busy=False, options=SocketOptions(user_timeout_s=20)),
    Situation(state=State.ZERO_WINDOW, peer_alive=True),
    Situation(state=State.ZERO_WINDOW, peer_alive=True, options=SocketOptions(**KEEPALIVE_10_5_3)),
    Situation(state=State.FIN_WAIT_2, orphan=False),
]


@pytest.mark.parametrize(("situation", "measured_s", "cause", "copies"), BUSY)
def test_busy_connection_dies_inside_the_window(
    situation: Situation, measured_s: float, cause: Cause, copies: int | None
) -> None:
    assert_holds(predict(situation), measured_s, cause, copies)


@pytest.mark.parametrize(("situation", "measured_s", "cause", "copies"), OTHERS)
def test_every_other_state_ends_inside_the_window(
    situation: Situation, measured_s: float, cause: Cause, copies: int | None
) -> None:
    assert_holds(predict(situation), measured_s, cause, copies)


@pytest.mark.parametrize(("measured_s", "copies", "situation"), TWO_TICKS)
def test_a_bound_near_a_tick_has_two_candidates(measured_s: float, copies: int, situation: Situation) -> None:
    candidates = predict(situation).candidates
    assert len(candidates) == 2
    (held,) = (c for c in candidates if c.window_s[0] <= measured_s <= c.window_s[1])
    assert held.copies == copies


@pytest.mark.parametrize("situation", NEVER)
def test_nothing_ends_what_nothing_times(situation: Situation) -> None:
    prediction = predict(situation)
    assert prediction.cause is Cause.NONE
    assert (prediction.give_up_s, prediction.window_s, prediction.bound_s) == (None, None, None)


def test_keepalive_has_no_effect_on_a_busy_connection() -> None:
    assert predict(Situation(options=SocketOptions(**KEEPALIVE_10_5_3))) == predict(Situation())


def test_only_a_keepalive_death_sends_a_reset() -> None:
    assert predict(Situation(busy=False, options=SocketOptions(**KEEPALIVE_10_5_3))).sends_reset
    assert not predict(Situation()).sends_reset


def test_a_shut_down_socket_is_no_orphan() -> None:
    prediction = predict(Situation(state=State.FIN_WAIT_1, orphan=False))
    assert prediction.cause is Cause.RETRIES2
    assert prediction.bound_s == 924.6


def test_keepalive_default_takes_more_than_two_hours() -> None:
    window = predict(Situation(busy=False, options=SocketOptions(keepalive=True))).window_s
    assert window is not None
    assert 7875 < window[0] < window[1] < 7875 * 1.03


def test_copies_of_a_default_connection_match_a_capture() -> None:
    """Taken of one connection with retries2 5."""
    seen = [0.2077, 0.4157, 0.8397, 1.6717, 3.3357, 6.6957]
    copies = predict(Situation(settings=KernelSettings(retries2=5))).copy_times
    assert [copy.kind for copy in copies] == [CopyKind.TAIL_LOSS_PROBE] + [CopyKind.TIMEOUT_COPY] * 5
    for at_s, copy in zip(seen, copies, strict=True):
        assert copy.window_s[0] <= at_s <= copy.window_s[1]
        assert copy.time_s == pytest.approx(at_s, rel=0.02)


def test_a_probe_with_new_data_is_no_copy() -> None:
    copies = predict(Situation(segments=60, probe_sends_new_data=True)).copy_times
    assert copies[0].kind is CopyKind.TIMEOUT_COPY
    assert copies[0].window_s[0] <= 0.216 <= copies[0].window_s[1]


def test_later_writes_put_the_first_timeout_anywhere_up_to_one_after_the_probe() -> None:
    """Writes every 50, 130, 300 ms: the first timeout came at 0.209, 0.284, 0.416 s."""
    prediction = predict(Situation(settings=KernelSettings(retries2=3), writes_on=True))
    assert prediction.window_s is not None
    for measured_s in (6.533, 6.552, 6.744):
        assert prediction.window_s[0] <= measured_s <= prediction.window_s[1]


@pytest.mark.parametrize(("limit", "cause"), [(2.5, Cause.USER_TIMEOUT), (60, Cause.SYN_RETRIES)])
def test_a_syn_ends_by_time_or_by_count_whichever_is_first(limit: float, cause: Cause) -> None:
    kernel = KernelSettings(syn_retries=1, syn_linear_timeouts=4)
    prediction = predict(Situation(state=State.SYN_SENT, settings=kernel, options=SocketOptions(user_timeout_s=limit)))
    assert prediction.cause is cause


def test_thin_streams_do_not_back_off_six_times() -> None:
    """Measured with retries2 4: copies at 0.42, 0.63, 0.84, 1.05, 1.26, 1.47, 1.67, 2.11, 2.94, 4.61 s."""
    kernel = KernelSettings(retries2=4, thin_linear_timeouts=True)
    assert_holds(predict(Situation(settings=kernel)), 8.062, Cause.RETRIES2, 11)


def test_an_rto_above_its_maximum_is_cut() -> None:
    kernel = KernelSettings(rto_max_ms=1000)
    assert predict(Situation(settings=kernel, rto_s=3.0)) == predict(Situation(settings=kernel, rto_s=1.0))


def test_copies_without_end_are_refused() -> None:
    options = SocketOptions(user_timeout_s=2_000_000)
    with pytest.raises(UsageError, match="copies"):
        predict(Situation(settings=KernelSettings(rto_max_ms=1000), options=options))


@given(
    retries2=st.integers(0, 20),
    rto_max_ms=st.integers(1000, 120_000),
    rto_min_us=st.sampled_from([5000, 20_000, 200_000, 1_000_000]),
    segments=st.integers(1, 3),
    user_timeout_s=st.one_of(st.none(), st.floats(0.01, 100)),
    hz=st.sampled_from([100, 250, 300, 1000]),
)
@settings(max_examples=40, deadline=None)
def test_windows_are_inside_what_the_waits_add_up_to(
    retries2: int, rto_max_ms: int, rto_min_us: int, segments: int, user_timeout_s: float | None, hz: int
) -> None:
    kernel = KernelSettings(retries2=retries2, rto_max_ms=rto_max_ms, rto_min_us=rto_min_us, hz=hz)
    options = SocketOptions(user_timeout_s=user_timeout_s)
    prediction = predict(Situation(settings=kernel, options=options, segments=segments))
    assert prediction.window_s is not None
    assert prediction.give_up_s is not None
    assert prediction.bound_s is not None
    assert prediction.window_s[0] <= prediction.give_up_s <= prediction.window_s[1]
    for candidate in prediction.candidates:
        # Each wait is late by its granularity and a handler's tick at most; the copies before are inside their windows.
        first, last = prediction.copy_times[0], prediction.copy_times[candidate.copies - 1]
        assert candidate.window_s[0] >= prediction.bound_s + first.window_s[0] - 2 / hz
        assert last.window_s[0] < candidate.window_s[0]
    for copy in prediction.copy_times:
        assert copy.window_s[0] <= copy.time_s <= copy.window_s[1]


def assert_holds(prediction: GiveUp, measured_s: float, cause: Cause, copies: int | None) -> None:
    assert prediction.cause is cause
    assert prediction.window_s is not None
    low, high = prediction.window_s
    assert low <= measured_s <= high
    assert high - low <= high / 8 + 0.04  # one wait is late by an eighth of itself at most; sums by far less
    if copies is not None:
        assert copies in [candidate.copies for candidate in prediction.candidates]
