"""Captures on one clock, and what they show of the kernels' counters."""

from pathlib import Path

import pytest

from lab.core.errors import InvalidRun
from lab.core.flow import Endpoint, FourTuple
from lab.core.segment import Flag, Segment
from lab.run import sides
from lab.run.sides import Side, count_sent_again, counters_moved, kernel_segments, names_of, read_side
from tests.run.cases import segment, summary
from tests.run.fakes import CLIENT, SERVER


def test_only_what_moved_is_kept() -> None:
    assert counters_moved({"a": 1, "b": 2}, {"a": 1, "b": 5, "c": 7}) == {"b": 3, "c": 7}


def test_a_capture_that_cannot_be_read_makes_the_run_invalid(tmp_path: Path) -> None:
    broken = tmp_path / "left.pcapng"
    broken.write_bytes(b"no capture at all")

    with pytest.raises(InvalidRun, match="own capture cannot be read"):
        read_side(broken, summary())


def test_the_labs_own_nudges_are_not_what_kernels_sent() -> None:
    nudged = Segment(101.0, CLIENT, SERVER, 0, 0, Flag.ACK, 0, 0)

    assert kernel_segments(Side([segment(100.0), nudged], [])) == [segment(100.0)]


def test_a_translated_segment_is_read_under_the_clients_own_name() -> None:
    router, other = Endpoint("203.0.113.1", 61000), Endpoint("203.0.113.1", 61001)
    names = names_of({FourTuple(CLIENT, SERVER): FourTuple(router, SERVER)})
    there, back = segment(100.0)._replace(source=router), segment(100.1, back=True)._replace(destination=router)
    stranger = segment(100.2)._replace(source=other)
    read = [sides._renamed(one, names) for one in (there, back, stranger)]

    assert [(one.source, one.destination) for one in read] == [(CLIENT, SERVER), (SERVER, CLIENT), (other, SERVER)]
    assert sides._renamed(there, None) is there


def test_what_a_node_sent_again_is_counted_over_all_its_flows() -> None:
    other = Endpoint(CLIENT.address, 41000)
    mine = [segment(at, Flag.ACK, 7) for at in (100.0, 100.3, 100.8)]
    others = [segment(at, Flag.ACK, 7)._replace(source=other) for at in (100.1, 100.5)]
    theirs = [segment(at, Flag.ACK, 7, back=True) for at in (100.0, 100.4)]
    everything = sorted([*mine, *others, *theirs], key=lambda s: s.time_s)

    def resent(until: float) -> int:
        return count_sent_again(everything, (CLIENT.address, "2001:db8:1::10"), until)["retransmissions"]

    assert resent(110.0) == 3
    assert resent(100.6) == 2
