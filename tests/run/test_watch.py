"""When a watch ends, and what it takes for the instant of the first loss."""

from collections.abc import Callable
from typing import Any

import pytest

from lab.core.socket import SocketOptions, TcpState
from lab.run.watch import LATE_S, QUIET_WATCH_S, SETTLE_S, EndWatch, first_send, watch
from lab.testbed.ports import SocketTrack
from tests.run.cases import made_forecast
from tests.run.fakes import Clock, Wake, sample

CUT_AT = 100.0
Track = Callable[[], SocketTrack]


def alive(clock: Clock, **changes: Any) -> Track:
    return lambda: SocketTrack((sample(at=99.0), sample(at=clock.now, **changes)), None, 0.0)


def gone(at: float, **changes: Any) -> Track:
    return lambda: SocketTrack((sample(at=at - 0.01, **changes),), at, 0.005)


def sending_until(clock: Clock, gone_at: float) -> Track:
    """Sent at 100.1, gives up later."""

    def track() -> SocketTrack:
        if clock.now < gone_at:
            sent = sample(at=clock.now, unacked=1, last_data_sent_s=clock.now - 100.1)
            return SocketTrack((sample(at=99.0), sent), None, 0.0)
        return gone(gone_at, unacked=1)()

    return track


def ends(client: Track, server: Track, options: SocketOptions | None = None) -> list[EndWatch]:
    return [EndWatch("client", made_forecast(options), client), EndWatch("server", made_forecast(), server)]


def test_two_idle_ends_without_keepalive_are_watched_for_a_while() -> None:
    clock = Clock(CUT_AT)
    until = watch(ends(alive(clock), alive(clock)), CUT_AT, None, clock.patience())

    assert QUIET_WATCH_S <= until - CUT_AT <= QUIET_WATCH_S + SETTLE_S + 0.3


def test_a_watch_ends_soon_after_both_sockets_are_gone() -> None:
    clock = Clock(CUT_AT)
    until = watch(ends(sending_until(clock, 106.9), gone(101.0)), CUT_AT, 60.0, clock.patience())

    assert 106.9 < until < 107.6


def test_a_late_death_is_waited_for_so_that_it_is_seen_as_late() -> None:
    clock = Clock(CUT_AT)
    until = watch(ends(sending_until(clock, 999.0), alive(clock)), CUT_AT, None, clock.patience())

    due = made_forecast().due(100.1)
    assert due is not None
    assert due[1] + LATE_S <= until < due[1] + LATE_S + 1.0


def test_the_users_limit_ends_it_to_the_moment_whatever_is_due() -> None:
    clock = Clock(CUT_AT)

    assert watch(ends(sending_until(clock, 999.0), alive(clock)), CUT_AT, 2.0, clock.patience()) == pytest.approx(102.0)


def test_the_users_time_is_used_where_a_fate_is_open() -> None:
    clock = Clock(CUT_AT)

    assert watch(ends(alive(clock), alive(clock)), CUT_AT, 30.0, clock.patience()) == pytest.approx(130.0)


def test_a_line_ends_the_watch_at_its_instant_and_no_fate_does() -> None:
    clock = Clock(CUT_AT)
    wake, said = Wake(clock), list[float]()
    clock.at += [(107.3, lambda: said.append(107.3)), (107.3, wake.set)]
    until = watch(
        ends(gone(101.0), gone(101.0)),
        CUT_AT,
        None,
        clock.patience(),
        wake=wake,
        waits=lambda: True,
        end_at=lambda: said[0] if said else None,
    )

    assert until == pytest.approx(107.3)


def test_what_was_not_foreseen_is_done_when_it_wakes_the_watch() -> None:
    clock = Clock(CUT_AT)
    wake, done = Wake(clock), list[float]()
    clock.at.append((101.1, wake.set))
    watch(
        ends(alive(clock), alive(clock)),
        CUT_AT,
        2.0,
        clock.patience(),
        do_what_is_due=lambda: done.append(clock.now),
        wake=wake,
    )

    assert any(at == pytest.approx(101.1) for at in done)


def test_where_an_end_is_outside_the_users_time_is_used_whatever_became_of_the_other() -> None:
    clock = Clock(CUT_AT)
    client = ends(gone(100.5), gone(100.5))[:1]

    assert watch(client, CUT_AT, 30.0, clock.patience(), outside=True) == pytest.approx(130.0)
    clock = Clock(CUT_AT)
    assert watch(client, CUT_AT, None, clock.patience(), outside=True) < CUT_AT + QUIET_WATCH_S + 1.0


def test_an_end_whose_program_has_closed_it_is_done() -> None:
    clock = Clock(CUT_AT)
    orphan = alive(clock, state=TcpState.FIN_WAIT1, inode=0, unacked=1)
    until = watch(ends(orphan, gone(101.0)), CUT_AT, 60.0, clock.patience())

    assert until < CUT_AT + 1.0


def test_a_program_that_has_not_told_yet_is_waited_for() -> None:
    clock = Clock(CUT_AT)
    told_at = 103.0
    until = watch(ends(gone(100.5), gone(100.5)), CUT_AT, None, clock.patience(), told=lambda: clock.now >= told_at)

    assert told_at < until < told_at + 0.2 + SETTLE_S


def test_a_program_that_never_tells_is_not_waited_for_for_ever_nor_past_the_users_limit() -> None:
    clock = Clock(CUT_AT)
    both = ends(gone(100.5), gone(100.5))

    assert watch(both, CUT_AT, None, clock.patience(), told=lambda: False) < CUT_AT + 6.0
    clock = Clock(CUT_AT)
    until = watch(both, CUT_AT, 20.0, clock.patience(), told=lambda: False, tell_s=float("inf"))
    assert until == pytest.approx(120.0)


def test_what_is_planned_is_done_on_time_before_the_watch_may_end() -> None:
    clock = Clock(CUT_AT)
    planned, done = [103.0], list[float]()

    def do() -> None:
        if planned and clock.now >= planned[0]:
            planned.pop()
            done.append(clock.now)

    until = watch(
        ends(gone(100.5), gone(100.5)),
        CUT_AT,
        None,
        clock.patience(),
        do_what_is_due=do,
        next_at=lambda: planned[0] if planned else None,
    )

    assert done == [pytest.approx(103.0, abs=0.002)]
    assert until > 103.0


def test_after_a_heal_an_end_is_watched_until_nothing_is_left_to_acknowledge() -> None:
    clock = Clock(CUT_AT)
    client = EndWatch("client", made_forecast(), sending_until(clock, 999.0))
    clock.now = 102.0
    assert client.due_until(CUT_AT) is not None

    client.healed_at = 102.0
    clock.now = 103.0
    assert client.due_until(CUT_AT) is not None
    client.track = alive(clock)
    assert client.due_until(CUT_AT) is None


def test_the_first_loss_is_dated_by_what_the_kernel_says() -> None:
    samples = [sample(at=99.9), sample(at=101.0, unacked=1, last_data_sent_s=0.9)]

    assert first_send(samples, CUT_AT) == pytest.approx(100.1)


def test_a_lone_fin_is_no_data_and_dated_by_the_last_quiet_look() -> None:
    samples = [sample(at=100.2), sample(at=100.3, unacked=1, last_data_sent_s=50.0, state=TcpState.FIN_WAIT1)]

    assert first_send(samples, CUT_AT) == pytest.approx(100.2)


def test_a_syn_sent_socket_has_never_sent_data_and_says_nonsense_about_it() -> None:
    syn = sample(at=100.3, unacked=1, state=TcpState.SYN_SENT, last_data_sent_s=4_600.0)

    assert first_send([syn], CUT_AT) == 100.3


def test_what_a_closed_window_holds_back_was_not_sent() -> None:
    held = [sample(at=100.2, send_queue=5000), sample(at=100.6, send_queue=5000)]

    assert first_send(held, CUT_AT) == 100.2
    assert first_send(held, CUT_AT, held_back=True) is None


def test_what_waited_before_the_cut_and_was_acknowledged_is_no_loss() -> None:
    assert first_send([sample(at=99.0, unacked=2), sample(at=100.5)], CUT_AT) is None


def test_copies_are_counted_by_the_kernels_own_count() -> None:
    end = EndWatch("client", made_forecast(), lambda: SocketTrack((), None, 0.0))
    assert end.copies_seen(CUT_AT) == []
    end.seen = SocketTrack(
        [sample(at=100.1, total_retrans=2), sample(at=100.4, total_retrans=3), sample(at=101.0, total_retrans=5)],
        None,
        0.0,
    )

    assert end.copies_seen(CUT_AT) == [100.4, 101.0, 101.0]
