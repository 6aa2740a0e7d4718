"""What is read out of the captures, from captures that are written here."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lab.control.examination import Evidence, Question, examine, find
from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Cut, Fault, Scope
from lab.core.flow import Direction
from lab.core.hole import Dark
from lab.core.segment import Flag
from tests.control.fakes import FLOW, OTHER
from tests.control.wire import Sent, write

CUT, HEALED = 100.0, 110.0
DARK = Dark(began_s=CUT - 0.001, done_s=CUT, healed_s=HEALED)

C, S = "client", "server"

CALM: Sequence[Sent] = (
    Sent(90.00, C, Flag.SYN, seq=0),
    Sent(90.01, S, Flag.SYN | Flag.ACK, seq=0, ack=1),
    Sent(90.02, C, Flag.ACK, seq=1, ack=1),
    Sent(99.50, C, Flag.ACK | Flag.PSH, seq=1, ack=1, length=10),
    Sent(99.51, S, Flag.ACK, seq=1, ack=11),
)
"""What passes before the cut, on both sides."""

LOST: Sequence[Sent] = (
    Sent(100.50, C, Flag.ACK | Flag.PSH, seq=11, ack=1, length=10),
    Sent(100.71, C, Flag.ACK | Flag.PSH, seq=11, ack=1, length=10),
    Sent(101.13, C, Flag.ACK | Flag.PSH, seq=11, ack=1, length=10),
)
"""What the client sends into the hole: once, and two copies."""

BACK: Sequence[Sent] = (
    Sent(112.00, C, Flag.ACK | Flag.PSH, seq=11, ack=1, length=10),
    Sent(112.01, S, Flag.ACK, seq=1, ack=21),
)


def question(folder: Path, left: Sequence[Sent], right: Sequence[Sent], fault: Fault = Fault(FLOW)) -> Question:  # noqa: B008
    files: dict[str, tuple[Path, ...]] = {}
    for side, sent in (("left", left), ("right", right)):
        path = folder / f"{side}.pcapng"
        write(path, side, sent)
        files[side] = (path,)
    return Question(fault, files, DARK, since=CUT - 1, until=HEALED)


def look(folder: Path, left: Sequence[Sent], right: Sequence[Sent]) -> Evidence:
    return find(question(folder, left, right))


def test_what_entered_and_never_came_out_is_counted_and_its_copies_are_dated(tmp_path: Path) -> None:
    found = look(tmp_path, [*CALM, *LOST, *BACK], [*CALM, *BACK])
    way = found.ways[Direction.FORWARD]

    assert (way.missing, way.early, way.crossed, way.strangers) == (3, 0, 0, 0)
    assert way.first_lost_at == pytest.approx(100.5)
    assert way.copies_at == pytest.approx((100.71, 101.13))
    assert (found.ended_early, found.icmp, found.reset_after) == (0, 0, False)


def test_the_first_segment_of_each_way_after_the_heal_is_dated(tmp_path: Path) -> None:
    found = look(tmp_path, [*CALM, *LOST, *BACK], [*CALM, *BACK])

    assert found.ways[Direction.FORWARD].back_at == pytest.approx(112.00005)
    assert found.ways[Direction.RETURN].back_at == pytest.approx(112.01005)


def test_a_reset_after_the_heal_is_no_return(tmp_path: Path) -> None:
    reset = Sent(112.01, S, Flag.RST, seq=1)
    found = look(tmp_path, [*CALM, *LOST, BACK[0], reset], [*CALM, BACK[0], reset])

    assert found.reset_after
    assert found.ways[Direction.RETURN].back_at is None


def test_while_it_is_dark_nothing_is_back(tmp_path: Path) -> None:
    asked = question(tmp_path, [*CALM, *LOST], CALM)
    found = find(replace(asked, dark=replace(DARK, healed_s=math.inf)))

    assert [way.back_at for way in found.ways.values()] == [None, None]
    assert found.ways[Direction.FORWARD].missing == 3


def test_a_segment_that_comes_through_the_hole_is_told_with_its_flags(tmp_path: Path) -> None:
    leak = Sent(105.0, C, Flag.FIN | Flag.ACK, seq=21, ack=1)
    way = look(tmp_path, [*CALM, *LOST, leak], [*CALM, leak]).ways[Direction.FORWARD]

    assert (way.crossed, way.crossed_fin, way.crossed_rst, way.missing) == (1, 1, 0, 3)


def test_a_segment_that_only_came_out_is_a_stranger(tmp_path: Path) -> None:
    forged = Sent(105.0, S, Flag.RST, seq=1)
    way = look(tmp_path, [*CALM, forged], CALM).ways[Direction.RETURN]

    assert way.strangers == 1


def test_an_end_before_the_cut_is_told_once_per_side(tmp_path: Path) -> None:
    fin = Sent(99.9, C, Flag.FIN | Flag.ACK, seq=11, ack=1)

    assert look(tmp_path, [*CALM, fin], [*CALM, fin]).ended_early == 2


def test_other_flows_are_passed_over_unless_the_whole_host_is_dark(tmp_path: Path) -> None:
    other = Sent(105.0, C, Flag.ACK, seq=1, ack=1, flow=OTHER)
    asked = question(tmp_path, [*CALM, other], CALM)
    host = replace(asked, fault=Fault(FLOW, Cut.BOTH, Scope.HOST))

    assert find(asked).ways[Direction.FORWARD].missing == 0
    assert find(host).ways[Direction.FORWARD].missing == 1


def test_what_was_lost_before_the_time_that_is_looked_at_is_not_the_faults(tmp_path: Path) -> None:
    earlier = Sent(98.0, C, Flag.ACK | Flag.PSH, seq=11, ack=1, length=10)

    assert look(tmp_path, [*CALM[:3], earlier, *CALM[3:]], CALM).ways[Direction.FORWARD].missing == 0


def test_what_entered_after_the_last_reading_of_the_rules_is_not_counted_yet(tmp_path: Path) -> None:
    asked = question(tmp_path, [*CALM, *LOST], CALM)

    assert find(replace(asked, until=101.0)).ways[Direction.FORWARD].missing == 2


def test_the_other_process_finds_the_same(tmp_path: Path) -> None:
    asked = question(tmp_path, [*CALM, *LOST, *BACK], [*CALM, *BACK])

    assert examine(asked) == find(asked)


def test_a_capture_that_is_none_is_told(tmp_path: Path) -> None:
    asked = question(tmp_path, CALM, CALM)
    asked.files["left"][0].write_bytes(b"this is no capture")

    with pytest.raises(UsageError):
        find(asked)
    with pytest.raises(InvalidRun, match="pcap or pcapng"):
        examine(asked)


def test_the_half_of_a_packet_that_is_just_being_written_is_passed_over(tmp_path: Path) -> None:
    asked = question(tmp_path, [*CALM, *LOST], CALM)
    path = asked.files["left"][0]
    path.write_bytes(path.read_bytes()[:-20])

    assert find(asked).ways[Direction.FORWARD].missing == 2
