"""What capture, samples, counters and output say of one end, each alone and where they disagree."""

import json
from typing import Any

import pytest

from lab.core.flow import Direction
from lab.core.hole import Passage
from lab.core.retransmission import classify
from lab.core.segment import Flag, Segment
from lab.core.socket import SocketSample, TcpState, Timer
from lab.run.evidence import (
    ABORTED,
    KernelFate,
    crossed_summary,
    dated_close,
    first_error,
    has_told,
    narrowed,
    read_fate,
    read_noticing,
    read_traffic,
)
from lab.testbed.ports import Line, SocketTrack
from tests.run.cases import gave_up, nothing, segment
from tests.run.fakes import FLOW, FakeProcess, sample

CUT_AT = 100.0
TIMED_OUT = {ABORTED: 1}


def data(at: float, seq: int, length: int = 7, *, back: bool = False, ack: int = 1) -> Segment:
    return segment(at, Flag.ACK | Flag.PSH, length, back=back, seq=seq)._replace(ack=ack)


def acknowledgment(at: float, ack: int, *, back: bool = True) -> Segment:
    return segment(at, back=back)._replace(ack=ack)


def traffic(*segments: Segment, healed_at: float | None = None, until: float = 110.0) -> Any:
    return read_traffic(classify(segments, FLOW), Direction.FORWARD, CUT_AT, healed_at, until)


TALK = (data(99.0, 1), acknowledgment(99.0001, 8))
LOST = (data(100.1, 8), data(100.31, 8), data(100.72, 8))


def test_the_first_unacknowledged_segment_is_what_was_lost_and_the_rest_are_copies() -> None:
    seen = traffic(*TALK, *LOST)

    assert seen.lost_at == 100.1
    assert [c.segment.time_s for c in seen.copies] == [100.31, 100.72]
    assert (seen.heard_at, seen.recovered_at, seen.ended_at) == (99.0001, None, None)


def test_what_left_before_the_cut_and_was_never_acknowledged_was_lost_too() -> None:
    assert traffic(*TALK, data(99.9999, 8)).lost_at == 99.9999


def test_what_was_acknowledged_was_not_lost() -> None:
    assert traffic(*TALK).lost_at is None


def test_sequence_numbers_wrap() -> None:
    top = 0xFFFF_FFFC
    seen = traffic(data(99.0, top), acknowledgment(99.1, 3), data(100.1, 3))

    assert seen.lost_at == 100.1


def test_copies_after_the_counters_were_read_belong_to_the_tidying_up() -> None:
    assert len(traffic(*TALK, *LOST, until=100.5).copies) == 1


def test_after_a_heal_the_first_acknowledgment_of_the_loss_is_the_recovery() -> None:
    answer = acknowledgment(102.001, 15)
    seen = traffic(*TALK, *LOST, data(102.0, 8), answer, healed_at=101.5)

    assert (seen.lost_at, seen.recovered_at) == (100.1, 102.001)


def test_an_old_acknowledgment_after_the_heal_is_no_recovery() -> None:
    assert traffic(*TALK, *LOST, acknowledgment(102.0, 8), healed_at=101.5).recovered_at is None


@pytest.mark.parametrize("flag", [Flag.FIN, Flag.RST])
def test_a_fin_or_reset_of_this_end_in_the_dark_is_its_end(flag: Flag) -> None:
    seen = traffic(*TALK, segment(101.0, Flag.ACK | flag, seq=8))

    assert seen.ended_at == 101.0
    assert seen.reset_at == (101.0 if flag is Flag.RST else None)


def test_what_the_other_end_sent_is_not_this_ends() -> None:
    seen = traffic(*TALK, segment(101.0, Flag.ACK | Flag.RST, back=True, seq=1))

    assert (seen.ended_at, seen.reset_at, seen.lost_at) == (None, None, None)


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
        ({"timer": Timer.RETRANSMIT, "state": TcpState.LAST_ACK, "inode": 0}, {"orphan": True}, "orphan-retries"),
        ({"state": TcpState.FIN_WAIT2, "inode": 0}, {"orphan": True}, "fin-timeout"),
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

    assert dated_close(fate(seen), seen, 101.05).closed_at == 101.05


@pytest.mark.parametrize("fin_at", [None, 100.2, 101.3])
def test_an_earlier_shutdown_or_a_later_fin_dates_no_close(fin_at: float | None) -> None:
    seen = closing(100.9, 101.0)

    assert dated_close(fate(seen), seen, fin_at).closed_at == 101.2


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


def event(at: float, name: str, **detail: object) -> str:
    return json.dumps({"at": at, "event": name, **detail})


def noticing(process: FakeProcess | None, seen: KernelFate, pattern: str | None = None, *, own: bool = False) -> Any:
    found = read_noticing(process, seen, CUT_AT, pattern=pattern, own=own)
    return found.at, found.by, found.errno


def test_a_pattern_alone_counts_where_one_is_given() -> None:
    process = FakeProcess()
    process.say(99.0, "lost it")
    process.say(106.0, "I lost it again")
    process.exit(105.0)

    assert noticing(process, gave_up(), "lost it") == (106.0, "output", None)
    assert noticing(process, gave_up(), "never") == (None, None, None)


def test_the_first_sign_counts_where_none_is_given() -> None:
    process = FakeProcess()
    process.exit(106.9, 1)
    closed = KernelFate(None, 0.0, None, closed_at=103.0)

    assert noticing(process, gave_up(106.8)) == (106.9, "exit", None)
    assert noticing(process, closed) == (103.0, "close", None)
    assert noticing(FakeProcess(), gave_up()) == (None, None, None)
    assert noticing(None, gave_up()) == (None, None, None)


def test_a_program_of_the_labs_own_says_its_error_and_when() -> None:
    process = FakeProcess()
    process.say(106.9, event(106.81, "error", errno="ETIMEDOUT"))
    process.exit(106.95, 1)

    assert noticing(process, gave_up(106.8), own=True) == (106.81, "error", "ETIMEDOUT")
    assert noticing(process, gave_up(106.8)) == (106.95, "exit", None), "a foreign line that looks so is not believed"


def test_output_that_is_no_event_is_passed_over() -> None:
    lines = [Line(1.0, "stdout", text) for text in ("hello", "{", "[1]", '"error"', event(1.0, "error", errno="EPIPE"))]

    assert first_error(lines) == {"at": 1.0, "event": "error", "errno": "EPIPE"}
    assert first_error(lines[:-1]) is None


def test_a_client_has_told_when_nothing_more_can_come() -> None:
    silent, talking, ended = FakeProcess(), FakeProcess(), FakeProcess(returncode=0)
    talking.say(101.0, event(101.0, "error", errno="ETIMEDOUT"))

    assert not has_told(silent, CUT_AT, pattern=None, own=False)
    assert not has_told(talking, CUT_AT, pattern=None, own=False)
    assert has_told(talking, CUT_AT, pattern=None, own=True)
    assert has_told(talking, CUT_AT, pattern="ETIMED", own=False)
    assert not has_told(talking, CUT_AT, pattern="never", own=True)
    assert has_told(ended, CUT_AT, pattern="never", own=False)
    assert has_told(None, CUT_AT, pattern="never", own=False)


def test_what_a_client_printed_before_the_cut_tells_nothing() -> None:
    talking = FakeProcess()
    talking.say(99.0, "connection lost; trying again")

    assert not has_told(talking, CUT_AT, pattern="connection lost", own=False)
    talking.say(101.0, "connection lost")
    assert has_told(talking, CUT_AT, pattern="connection lost", own=False)


def test_what_crossed_is_counted_by_what_it_says() -> None:
    crossed = (segment(101.0), segment(102.0, Flag.RST), segment(103.0, Flag.ACK | Flag.FIN))
    passages = [Passage(direction, 3, 3, (), crossed, ()) for direction in Direction]

    assert crossed_summary(passages) == {"segments": 6, "rst": 2, "fin": 2}
