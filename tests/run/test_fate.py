"""What samples and counters say of a socket's end, each alone and where they disagree."""

from typing import Any

import pytest

from lab.core.socket import SocketSample, TcpState, Timer
from lab.run.fate import ABORTED, ENDED_OPEN, KernelFate, dated_close, narrowed, read_fate
from lab.testbed.ports import SocketTrack
from tests.run.cases import gave_up, nothing
from tests.run.fakes import sample

CUT_AT = 100.0
TIMED_OUT = {ABORTED: 1, ENDED_OPEN: 1}
"""Of a connection that somebody still had."""

LEFT_ALONE = {ABORTED: 1}
"""Of one that was closed before its timer ended it."""


def track(*samples: SocketSample, gone_at: float | None = None) -> SocketTrack:
    return SocketTrack(samples, gone_at, 0.004 if gone_at else 0.0)


def fate(seen: SocketTrack, delta: dict[str, int] | None = None, **changes: Any) -> KernelFate:
    return read_fate(seen, delta or {}, CUT_AT, **{"user_timeout": False, "reset": False, **changes})


@pytest.mark.parametrize(
    ("last", "changes", "cause"),
    [
        ({"timer": Timer.RETRANSMIT, "unacked": 1}, {}, "retries2"),
        ({"timer": Timer.RETRANSMIT, "unacked": 1}, {"user_timeout": True}, "user-timeout"),
        ({"timer": Timer.KEEPALIVE}, {"user_timeout": True}, "keepalive"),
        ({"timer": Timer.PROBE}, {}, "probes"),
        ({"timer": Timer.RETRANSMIT, "state": TcpState.SYN_SENT}, {}, "syn-retries"),
        ({"timer": Timer.RETRANSMIT, "unacked": 1}, {"reset": True}, "reset"),
        ({"timer": Timer.RETRANSMIT, "state": TcpState.LAST_ACK, "inode": 0}, {"as_closed": True}, "orphan-retries"),
        ({"state": TcpState.FIN_WAIT2, "inode": 0}, {"as_closed": True}, "fin-timeout"),
        ({"state": TcpState.NEW_SYN_RECV, "inode": 0}, {}, "synack-retries"),
    ],
)
def test_the_last_sample_tells_why_the_kernel_gave_up(
    last: dict[str, Any], changes: dict[str, Any], cause: str
) -> None:
    seen = fate(track(sample(at=105.0, **last), gone_at=105.5), TIMED_OUT, **changes)

    assert (seen.gone_at, seen.cause) == (105.5, cause)


def test_a_socket_that_is_gone_without_the_kernels_count_was_closed_by_its_program() -> None:
    seen = fate(track(sample(at=105.0), gone_at=105.5))

    assert (seen.gone_at, seen.cause, seen.closed_at) == (None, None, 105.5)


def test_an_orphans_end_is_no_give_up_of_the_connection_that_the_program_had() -> None:
    orphan = sample(at=101.0, state=TcpState.FIN_WAIT1, inode=0, timer=Timer.RETRANSMIT)
    seen = fate(track(sample(at=100.9), orphan, gone_at=104.0), TIMED_OUT)

    assert (seen.gone_at, seen.closed_at) == (None, 101.0)


def test_a_connection_that_was_not_accepted_yet_has_no_owner_and_is_not_closed() -> None:
    waiting = sample(at=101.0, inode=0, timer=Timer.RETRANSMIT, unacked=1)

    assert fate(track(waiting)).closed_at is None
    assert fate(track(waiting, gone_at=105.0), TIMED_OUT).cause == "retries2"


def test_a_socket_that_nobody_saw_has_no_fate() -> None:
    assert fate(track()) == nothing()


def closing(*held_at: float) -> SocketTrack:
    return track(*(sample(at=at) for at in held_at), sample(at=101.2, state=TcpState.FIN_WAIT1, inode=0))


def test_a_close_is_dated_by_its_fin() -> None:
    seen = closing(100.9, 101.0)

    dated = dated_close(fate(seen), seen, 101.05)

    assert (dated.closed_at, dated.held_at) == (101.05, None)


@pytest.mark.parametrize("fin_at", [None, 100.2, 101.3])
def test_an_earlier_shutdown_or_a_later_fin_dates_no_close(fin_at: float | None) -> None:
    seen = closing(100.9, 101.0)

    dated = dated_close(fate(seen), seen, fin_at)

    assert (dated.held_at, dated.closed_at) == (101.0, 101.2)


HELD = track(sample(at=104.75, timer=Timer.RETRANSMIT, unacked=1), gone_at=105.0)
"""A socket that its program held when it was looked at last."""


def test_a_close_that_no_sample_saw_is_told_by_others() -> None:
    seen = fate(HELD, TIMED_OUT, told_at=104.875)

    assert (seen.gone_at, seen.cause, seen.closed_at, seen.held_at) == (None, None, 104.875, 104.75)


@pytest.mark.parametrize(("user_timeout", "cause"), [(False, "orphan-retries"), (True, "user-timeout")])
def test_what_ended_a_socket_whose_close_no_sample_saw_is_an_orphans_end(user_timeout: bool, cause: str) -> None:
    seen = fate(HELD, TIMED_OUT, told_at=104.875, as_closed=True, user_timeout=user_timeout)

    assert (seen.gone_at, seen.cause, seen.closed_at) == (105.0, cause, 104.875)


@pytest.mark.parametrize("as_closed", [False, True])
def test_a_close_of_which_nobody_tells_is_told_by_the_kernels_counts(as_closed: bool) -> None:
    seen = fate(HELD, LEFT_ALONE, as_closed=as_closed)

    assert (seen.closed_at, seen.held_at) == (105.0, 104.75)
    assert (seen.gone_at, seen.cause) == ((105.0, "orphan-retries") if as_closed else (None, None))


@pytest.mark.parametrize("timer", [Timer.RETRANSMIT, Timer.PROBE])
def test_a_socket_that_went_with_a_reset_of_its_own_was_let_go_by_its_program(timer: Timer) -> None:
    """Whatever timed out was another connection."""
    seen = fate(track(sample(at=104.75, timer=timer, unacked=1), gone_at=105.0), TIMED_OUT, reset_at=104.9)

    assert (seen.gone_at, seen.cause, seen.closed_at) == (None, None, 105.0)


@pytest.mark.parametrize(
    ("timer", "reset_at", "cause"), [(Timer.KEEPALIVE, 105.0, "keepalive"), (Timer.RETRANSMIT, 105.5, "retries2")]
)
def test_keepalive_resets_too_and_a_later_reset_is_an_answer_to_what_came_then(
    timer: Timer, reset_at: float, cause: str
) -> None:
    seen = fate(track(sample(at=104.75, timer=timer), gone_at=105.0), TIMED_OUT, reset_at=reset_at)

    assert (seen.gone_at, seen.cause) == (105.0, cause)


@pytest.mark.parametrize("fin_at", [None, 105.25])
def test_without_a_fin_before_its_end_nothing_tells_of_a_close(fin_at: float | None) -> None:
    seen = fate(HELD, TIMED_OUT, told_at=fin_at)

    assert (seen.gone_at, seen.cause, seen.closed_at) == (105.0, "retries2", None)


def test_a_fin_that_a_program_sent_which_was_seen_to_hold_the_socket_after_it_is_a_shutdown() -> None:
    shut = track(sample(at=104.75, state=TcpState.FIN_WAIT1, timer=Timer.RETRANSMIT, unacked=1), gone_at=105.0)
    seen = fate(shut, TIMED_OUT, told_at=101.0)

    assert (seen.gone_at, seen.cause, seen.closed_at) == (105.0, "retries2", None)


def test_other_witnesses_narrow_the_date_of_a_death() -> None:
    loose = gave_up(105.0, within_s=0.125)

    assert narrowed(loose, None, None) == loose
    assert narrowed(loose, 104.9375, 105.03125).gone_at == 104.984375
    assert narrowed(loose, 104.9375, 105.03125).within_s == 0.046875


@pytest.mark.parametrize(("not_before", "not_after"), [(90.0, None), (None, 110.0), (105.2, None), (None, 104.0)])
def test_witnesses_outside_the_interval_narrow_nothing(not_before: float | None, not_after: float | None) -> None:
    loose = gave_up(105.0, within_s=0.125)

    assert narrowed(loose, not_before, not_after) == loose
    assert narrowed(nothing(), not_before, not_after) == nothing()
