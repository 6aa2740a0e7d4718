"""What one end put on the wire after the cut: what was lost, what was sent again, what came back."""

from typing import Any

import pytest

from lab.core.flow import Direction
from lab.core.retransmission import classify
from lab.core.segment import Flag, Segment
from lab.run.traffic import read_traffic
from tests.run.cases import segment
from tests.run.fakes import FLOW

CUT_AT = 100.0


def data(at: float, seq: int, length: int = 7, *, back: bool = False, ack: int = 1) -> Segment:
    return segment(at, Flag.ACK | Flag.PSH, length, back=back, seq=seq)._replace(ack=ack)


def acknowledgment(at: float, ack: int, *, back: bool = True) -> Segment:
    return segment(at, back=back)._replace(ack=ack)


def traffic(*segments: Segment, healed_at: float | None = None, until: float = 110.0) -> Any:
    return read_traffic(classify(segments, FLOW), Direction.FORWARD, CUT_AT, healed_at, until)


TALK = (data(99.0, 1), acknowledgment(99.0001, 8))
LOST = (data(100.1, 8), data(100.31, 8), data(100.72, 8))


def probe(at: float, seq: int) -> Segment:
    return segment(at, seq=seq)


def test_probes_count_from_the_last_packet_received_on_whether_or_not_the_path_was_dark_then() -> None:
    """The peer of a closed window passes over a probe that comes less than half a second after it answered one."""
    closed = acknowledgment(99.0001, 8)._replace(window=0)
    answer = closed._replace(time_s=99.2101)
    seen = traffic(TALK[0], closed, probe(99.21, 7), answer, probe(99.63, 7), probe(100.48, 7))

    assert seen.heard_at == 99.2101
    assert [c.segment.time_s for c in seen.copies] == [99.63, 100.48]


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
    assert seen.fin_at == (101.0 if flag is Flag.FIN else None)


def test_what_was_lost_first_is_told_by_its_length_too() -> None:
    fin = segment(101.0, Flag.ACK | Flag.FIN, seq=8)

    assert (traffic(*TALK, *LOST).lost_length, traffic(*TALK, fin).lost_length) == (7, 0)


def test_what_the_other_end_sent_is_not_this_ends() -> None:
    seen = traffic(*TALK, segment(101.0, Flag.ACK | Flag.RST, back=True, seq=1))

    assert (seen.ended_at, seen.reset_at, seen.lost_at) == (None, None, None)
