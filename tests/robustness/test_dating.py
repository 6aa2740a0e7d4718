"""Deaths are dated by what the kernel announced where the sampler was kept from looking."""

from dataclasses import replace

import pytest

from lab.core.flow import Endpoint
from lab.core.socket import SocketSample, TcpState, Timer
from lab.run.fate import EARLY_S, KernelFate, announced_expiry, narrowed
from lab.testbed.ports import SocketTrack

LAST = SocketSample(
    at=100.0,
    local=Endpoint("192.0.2.10", 40000),
    remote=Endpoint("198.51.100.20", 5000),
    state=TcpState.ESTABLISHED,
    timer=Timer.RETRANSMIT,
    expires_s=0.232,
    backoff=7,
    retransmits=7,
    rto_s=1.0,
    srtt_s=0.001,
    rttvar_s=0.001,
    unacked=1,
    total_retrans=8,
    not_sent_bytes=0,
    bytes_acked=10,
    bytes_received=10,
    recv_queue=0,
    send_queue=5,
    last_data_sent_s=0.8,
    last_data_received_s=6.0,
    last_ack_received_s=6.0,
    peer_window=65535,
    inode=1,
)

DEATH = KernelFate(gone_at=100.13, within_s=0.13, cause="retries2", closed_at=None)
"""A look at 100.0 s, and none before 100.26 s: a machine that was busy."""


def track(**changes: object) -> SocketTrack:
    last = replace(LAST, **changes)  # type: ignore[arg-type]  # names and types are SocketSample's own
    return SocketTrack(samples=[last], gone_at=DEATH.gone_at, gone_within_s=DEATH.within_s)


def test_a_sampler_that_came_late_dates_the_death_from_the_announced_expiry_on() -> None:
    announced = announced_expiry(track(), DEATH)
    assert announced == pytest.approx(100.232 - EARLY_S)

    closer = narrowed(DEATH, announced, None)

    assert closer.gone_at == pytest.approx(100.24)
    assert closer.within_s == pytest.approx(0.02)


@pytest.mark.parametrize("cause", ["reset", "icmp", None])
def test_an_end_from_outside_may_come_before_the_timer(cause: str | None) -> None:
    assert announced_expiry(track(), replace(DEATH, cause=cause)) is None


def test_a_timer_that_was_overdue_dates_nothing_more_closely() -> None:
    same = narrowed(DEATH, announced_expiry(track(expires_s=0.0), DEATH), None)

    assert same.within_s == pytest.approx(DEATH.within_s)


def test_a_socket_without_a_timer_announced_nothing() -> None:
    assert announced_expiry(track(timer=Timer.OFF, expires_s=None), DEATH) is None
