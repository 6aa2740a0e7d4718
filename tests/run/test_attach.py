"""Which flow of a container is meant, and what proves that it was dark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Endpoint, FourTuple
from lab.core.icmp import IcmpMessage
from lab.core.segment import Flag, Segment
from lab.core.timeline import ClockPair
from lab.run.attach import AttachSpec
from lab.run.candidates import FIRST, NEWEST, Candidate, candidates, choose
from lab.run.sides import Side
from lab.run.sinkwitness import SinkWitness
from lab.testbed.ports import CaptureSummary, CutReceipt
from tests.run.fakes import CLIENT, FLOW, SERVER, listener, sample

OTHER = Endpoint("203.0.113.7", 443)
CUT, HEALED = CutReceipt(100.0, 100.001), CutReceipt(110.0, 110.001)


def test_without_a_listener_the_container_is_the_client() -> None:
    assert candidates([sample()], None) == [Candidate(FLOW, Placement.CLIENT_SINK, 7001)]


def test_with_a_listener_on_its_port_the_container_is_the_server() -> None:
    served = sample(local=SERVER, remote=CLIENT)
    found = candidates([served, listener()], None)

    assert found == [Candidate(FLOW, Placement.SERVER_SINK, 7001)]
    assert (found[0].local, found[0].remote) == (SERVER, CLIENT)


def test_a_server_whose_listener_is_closed_is_known_by_its_port() -> None:
    assert candidates([sample(local=SERVER, remote=CLIENT)], SERVER.port)[0].placement is Placement.SERVER_SINK


def test_listeners_and_flows_of_other_ports_are_passed_over() -> None:
    assert candidates([listener(), sample(remote=OTHER)], SERVER.port) == []


def several() -> list[Candidate]:
    older, newer = sample(inode=11), sample(inode=12, remote=OTHER, local=Endpoint(CLIENT.address, 40001))
    return candidates([newer, older], None)


@pytest.mark.parametrize(
    ("choice", "inode"),
    [(FIRST, 11), (NEWEST, 12), ("40001", 12), ("5000", 11), ("203.0.113.7:443", 12), ("192.0.2.10:40000", 11)],
)
def test_a_choice_tells_flows_apart(choice: str, inode: int) -> None:
    assert choose(several(), choice).inode == inode


def test_several_flows_without_a_choice_are_listed() -> None:
    with pytest.raises(UsageError, match=r"2 established flows match.\n  192.0.2.10:40000 > .*\n.*Fix: --flow first"):
        choose(several(), None)


def test_a_choice_that_is_none_is_said_with_those_that_are_there() -> None:
    with pytest.raises(UsageError, match=r"no established TCP flow that is 9.\n  192.0.2.10:40000"):
        choose(several(), "9")


def test_a_container_without_flows_is_said() -> None:
    with pytest.raises(UsageError, match=r"no established TCP flow with port 80\. Fix: wait until"):
        choose([], None, 80)


def test_a_port_without_flows_is_said_with_the_flows_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"with port 80\.\n  192.0.2.10:40000 > .*\n.*\n?.*Fix: name one of these"):
        choose([], None, 80, several())


def test_a_heal_after_the_watch_is_refused() -> None:
    with pytest.raises(UsageError, match="would come after the watch"):
        AttachSpec(heal_after_s=5, watch_s=5)


def out(at: float) -> Segment:
    return Segment(at, CLIENT, SERVER, 1, 1, Flag.ACK, 100, 5)


def back(at: float) -> Segment:
    return Segment(at, SERVER, CLIENT, 1, 1, Flag.ACK, 100, 5)


def failed(
    interface: list[Segment], sink: list[Segment], matched: Matched, icmp: Sequence[IcmpMessage] = (), **changes: Any
) -> set[str]:
    fault = replace(Fault(FourTuple(CLIENT, SERVER), placement=Placement.CLIENT_SINK), **changes)
    files = {"interface": Path("interface.pcapng"), "sink": Path("sink.pcapng")}
    summary = CaptureSummary(
        files, {"interface": 9, "sink": 9}, {"interface": 0, "sink": 0}, 99.0, 111.0, (ClockPair(1e9, 99.0),) * 2
    )
    judged = SinkWitness(fault, CUT, HEALED, {"interface": Side(interface, icmp), "sink": Side(sink, [])})
    return {check.name for check in judged.checks(matched, summary) if not check.ok}


def test_a_hole_whose_counts_agree_is_proved() -> None:
    beside = [out(99.5), back(99.6), back(105.0), out(110.5), back(110.6)]
    assert failed(beside, [out(101.0), out(102.0)], Matched(2, 1)) == set()


def test_a_segment_that_left_beside_the_sink_disproves_it() -> None:
    """As those of a socket that was bound to a device meanwhile do."""
    assert failed([out(105.0)], [out(101.0)], Matched(1, 0)) == {"nothing-left"}


def test_a_rule_that_led_away_what_never_fell_disproves_it() -> None:
    assert failed([], [out(101.0)], Matched(2, 0)) == {"rule-equals-capture-forward"}


def test_what_came_in_the_dark_and_was_not_dropped_disproves_it() -> None:
    assert failed([back(105.0), back(106.0)], [], Matched(0, 1)) == {"rule-equals-capture-return"}


def test_what_was_on_the_way_at_a_commit_may_have_been_dropped_or_not() -> None:
    beside = [back(99.9995), back(105.0), back(109.9995), back(110.0005)]
    assert [failed(beside, [], Matched(0, count)) for count in range(1, 5)] == [set()] * 4
    assert failed(beside, [], Matched(0, 5)) == {"rule-equals-capture-return"}


def test_a_way_that_was_left_open_is_not_asked_about() -> None:
    assert failed([out(105.0), back(105.1)], [], Matched(0, 1), direction=Cut.RETURN) == set()


def test_a_hole_that_nothing_came_to_is_not_proved() -> None:
    assert failed([], [], Matched(0, 0), direction=Cut.RETURN) == {"rules-matched"}


@pytest.mark.parametrize(("at", "proofs"), [(99.0, set()), (105.0, {"no-icmp"}), (110.5, set())])
def test_an_icmp_error_about_the_flow_in_the_dark_disproves_it(at: float, proofs: set[str]) -> None:
    told = IcmpMessage(at, "192.0.2.1", ipv6=False, type=3, code=1, source=CLIENT, destination=SERVER, seq=1)
    other = replace(told, time_s=105.0, destination=OTHER)

    assert failed([], [out(101.0)], Matched(1, 0), icmp=[told, other]) == proofs


def test_what_came_in_the_dark_was_not_heard() -> None:
    fault = Fault(FourTuple(CLIENT, SERVER), placement=Placement.CLIENT_SINK)
    late = back(105.0)._replace(ack=6)
    sides = {"interface": Side([back(99.0), late], []), "sink": Side([out(101.0), out(101.3)], [])}

    seen = SinkWitness(fault, CUT, HEALED, sides).traffic(until=109.0, healed=None)

    assert (seen.lost_at, seen.heard_at, len(seen.copies)) == (101.0, 99.0, 1)
