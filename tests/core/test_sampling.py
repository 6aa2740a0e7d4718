import math
from dataclasses import replace

import pytest

from lab.core.flow import Endpoint
from lab.core.sampling import SamplingSchedule
from lab.core.socket import SocketSample, TcpState, Timer

IDLE = SocketSample(
    at=100.0,
    local=Endpoint("192.0.2.1", 40000),
    remote=Endpoint("198.51.100.1", 80),
    state=TcpState.ESTABLISHED,
    timer=Timer.OFF,
    expires_s=None,
    backoff=0,
    retransmits=0,
    rto_s=0.204,
    srtt_s=0.0001,
    rttvar_s=0.00005,
    unacked=0,
    total_retrans=0,
    not_sent_bytes=0,
    bytes_acked=1,
    bytes_received=0,
    recv_queue=0,
    send_queue=0,
    last_data_sent_s=1.0,
    last_data_received_s=1.0,
    last_ack_received_s=1.0,
    peer_window=65536,
    inode=4711,
)


def waiting(at: float, expires_s: float) -> SocketSample:
    return replace(IDLE, at=at, timer=Timer.RETRANSMIT, expires_s=expires_s, unacked=1, rto_s=1.0)


def settled() -> SamplingSchedule:
    """A schedule that has known its socket for long."""
    schedule = SamplingSchedule()
    schedule.next_at(replace(IDLE, at=0.0), now=0.0)
    return schedule


def test_nothing_due_is_looked_at_sparsely() -> None:
    schedule = settled()
    assert schedule.next_at(IDLE, now=100.0) == pytest.approx(100.204)
    assert schedule.next_at(replace(IDLE, rto_s=30.0), now=100.0) == pytest.approx(100.25)


def test_a_short_rto_is_looked_at_more_often_but_not_without_bound() -> None:
    assert settled().next_at(replace(IDLE, rto_s=0.005), now=100.0) == pytest.approx(100.05)


def test_a_socket_that_tells_no_rto_is_looked_at_sparsely() -> None:
    time_wait = replace(IDLE, state=TcpState.TIME_WAIT, timer=Timer.TIME_WAIT, expires_s=60.0, rto_s=0.0)
    assert settled().next_at(time_wait, now=100.0) == pytest.approx(100.25)


def test_an_expiry_between_two_sparse_looks_brings_the_next_one_forward() -> None:
    schedule = settled()
    assert schedule.next_at(waiting(100.0, expires_s=0.1), now=100.0) == pytest.approx(100.1 - schedule.lead_s)


def test_an_overdue_timer_is_looked_at_densely_until_it_moves() -> None:
    schedule = settled()
    assert schedule.next_at(waiting(100.0, expires_s=0.0), now=100.0) == pytest.approx(100.005)
    assert schedule.next_at(waiting(100.005, expires_s=0.0), now=100.005) == pytest.approx(100.010)
    assert schedule.next_at(waiting(100.010, expires_s=2.0), now=100.010) == pytest.approx(100.260)


def test_a_long_overdue_timer_is_looked_at_less_often_but_still_dates_a_death_to_twenty_milliseconds() -> None:
    schedule = settled()
    schedule.next_at(waiting(100.0, expires_s=0.0), now=100.0)
    step = schedule.next_at(waiting(101.0, expires_s=0.0), now=101.0) - 101.0
    assert step == pytest.approx(0.02)
    assert step / 2 <= 0.02


def test_a_socket_that_does_not_exist_yet_is_waited_for() -> None:
    schedule = SamplingSchedule()
    assert schedule.next_at(None, now=100.0) == pytest.approx(100.02)
    assert schedule.next_at(None, now=109.9) == pytest.approx(109.92)
    assert schedule.next_at(None, now=111.0) == pytest.approx(111.25)


def test_a_new_socket_is_looked_at_densely_first() -> None:
    schedule = SamplingSchedule()
    schedule.next_at(None, now=99.98)
    assert schedule.next_at(IDLE, now=100.0) == pytest.approx(100.005)
    assert schedule.next_at(IDLE, now=100.2) == pytest.approx(100.404)


@pytest.mark.parametrize("expires_s", [None, 0.0, 0.001, 0.0125, 0.2, 120.0, 7200.0])
@pytest.mark.parametrize("late_s", [0.0, 0.3, 5.0])
def test_the_next_look_is_always_ahead_and_never_far(expires_s: float | None, late_s: float) -> None:
    """However late the host was: no busy loop, no sleep past the sparse interval."""
    schedule = settled()
    now = 100.0 + late_s
    sample = replace(IDLE, timer=Timer.OFF if expires_s is None else Timer.KEEPALIVE, expires_s=expires_s)
    assert now + schedule.dense_s <= schedule.next_at(sample, now=now) <= now + schedule.sparse_s


def fires_at(armed_at: int, wait: int) -> int:
    """The jiffy in which the kernel's wheel fires a timer (``calc_index`` in kernel/time/timer.c)."""
    granularity = 1
    while wait >= 63 * granularity:
        granularity *= 8
    return ((armed_at + wait) // granularity + 1) * granularity


@pytest.mark.parametrize("jiffy_s", [0.001, 0.004, 0.01])
@pytest.mark.parametrize("wait_s", [0.05, 0.204, 1.0, 5.3, 29.9, 120.0])
def test_every_death_by_timer_is_dated_to_twenty_milliseconds_at_little_cost(jiffy_s: float, wait_s: float) -> None:
    """A simulated wheel, whatever its count of jiffies when the timer was armed."""
    for armed_at in range(0, 4096, 173):
        wait = round(wait_s / jiffy_s)
        expires_at = (armed_at + wait) * jiffy_s
        dies_at = fires_at(armed_at, wait) * jiffy_s
        schedule = settled()
        now = seen_at = armed_at * jiffy_s + 0.5 * jiffy_s
        looks = 0
        while now < dies_at:
            looks += 1
            seen_at = now
            # As the kernel announces it: from the last tick, in whole milliseconds, never negative.
            left_s = max(expires_at - math.floor(now / jiffy_s) * jiffy_s, 0.0)
            now = schedule.next_at(waiting(seen_at, expires_s=math.floor(left_s * 1e3) / 1e3), now=now)
        assert (now - seen_at) / 2 <= 0.02
        assert looks <= 40 + 20 * wait_s
