"""Reading out what a run left: counters and rules at rest, captures on one clock, the bystander's life."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from lab.core.errors import InvalidRun
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Endpoint
from lab.core.segment import Flag, Segment
from lab.run import collect as collecting
from lab.run.collect import (
    RETRANSMITTED,
    Side,
    Watched,
    count_sent_again,
    counters_moved,
    kernel_segments,
    nudge,
    read_side,
    settled_counters,
    settled_matched,
)
from lab.testbed.ports import Testbed
from tests.run.cases import CUT, segment, summary
from tests.run.fakes import CLIENT, FLOW, SERVER, FakeNode, FakeProcess

FAULT = Fault(FLOW)


@dataclass
class FakeRouter(FakeNode):
    """A router whose rules have matched what the test says, reading by reading."""

    name: str = "router"
    readings: Iterator[Matched] = field(default_factory=lambda: itertools.repeat(Matched(3, 1)))

    def matched(self, fault: Fault) -> Matched:  # noqa: ARG002 - the port's signature
        return next(self.readings)


@dataclass
class FakeTestbed:
    client: FakeNode = field(default_factory=FakeNode)
    router: FakeRouter = field(default_factory=FakeRouter)
    server: FakeNode = field(default_factory=lambda: FakeNode("server", SERVER.address, "2001:db8:2::20"))


def nodes(**changes: Any) -> tuple[FakeTestbed, Testbed]:
    made = FakeTestbed(**changes)
    return made, cast("Testbed", made)


class Moving(FakeNode):
    """A node that resends at every reading, a number of times."""

    times = 3

    def counters(self) -> dict[str, int]:
        self.times -= self.times > 0
        return {RETRANSMITTED: 10 - self.times}


def test_counters_are_read_when_nothing_is_being_resent() -> None:
    found, at = settled_counters(nodes(client=Moving())[1])

    assert found["client"][RETRANSMITTED] == 10
    assert at > 0


def test_counters_that_never_rest_make_the_run_invalid() -> None:
    restless = Moving()
    restless.times = 1000

    with pytest.raises(InvalidRun, match="stand still"):
        settled_counters(nodes(client=restless)[1])


def test_other_counters_may_move() -> None:
    class Receiving(FakeNode):
        numbers = itertools.count()

        def counters(self) -> dict[str, int]:
            return {"TcpInSegs": next(self.numbers)}

    assert settled_counters(nodes(server=Receiving("server"))[1])[0]["server"]


def test_only_what_moved_is_kept() -> None:
    assert counters_moved({"a": 1, "b": 2}, {"a": 1, "b": 5, "c": 7}) == {"b": 3, "c": 7}


def matched(*forward: int) -> Iterator[Matched]:
    return itertools.chain((Matched(n, 0) for n in forward), itertools.repeat(Matched(forward[-1], 0)))


def test_rules_are_read_when_they_rest() -> None:
    assert settled_matched(nodes(router=FakeRouter(readings=matched(1, 2, 3, 3)))[1], FAULT)[0] == Matched(3, 0)


def test_rules_that_never_rest_make_the_run_invalid() -> None:
    busy = FakeRouter(readings=matched(*range(1000)))

    with pytest.raises(InvalidRun, match="A rule that rests"):
        settled_matched(nodes(router=busy)[1], FAULT)


@pytest.mark.parametrize(
    ("cut", "client", "server"),
    [(Cut.BOTH, True, True), (Cut.FORWARD, True, False), (Cut.RETURN, False, True)],
)
def test_every_direction_that_is_cut_is_nudged_by_its_sender(cut: Cut, client: bool, server: bool) -> None:
    made, testbed = nodes(router=FakeRouter(readings=(Matched(n, n) for n in itertools.count())))
    nudge(testbed, replace(FAULT, direction=cut))

    assert made.client.nudges == ([(CLIENT, SERVER)] if client else [])
    assert made.server.nudges == ([(SERVER, CLIENT)] if server else [])


def test_a_nudge_that_no_rule_has_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = itertools.count(0.0, 0.2)
    monkeypatch.setattr("lab.run.collect.time.monotonic", lambda: next(instants))
    made, testbed = nodes()
    nudge(testbed, FAULT)

    assert made.client.nudges


def test_a_drop_in_the_senders_own_output_is_not_nudged() -> None:
    made, testbed = nodes()
    nudge(testbed, replace(FAULT, placement=Placement.OWN_OUTPUT))

    assert made.client.nudges == []


def test_a_capture_that_cannot_be_read_makes_the_run_invalid(tmp_path: Path) -> None:
    broken = tmp_path / "left.pcapng"
    broken.write_bytes(b"no capture at all")

    with pytest.raises(InvalidRun, match="own capture cannot be read"):
        read_side(broken, summary())


def test_the_labs_own_nudges_are_not_what_kernels_sent() -> None:
    nudged = Segment(101.0, CLIENT, SERVER, 0, 0, Flag.ACK, 0, 0)

    assert kernel_segments(Side([segment(100.0), nudged], [])) == [segment(100.0)]


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


def watched(bystander: FakeProcess | None = None, **changes: Any) -> Watched:
    fields: dict[str, Any] = {
        "spec": cast("Any", type("Spec", (), {"closes": False})),
        "testbed": nodes()[1],
        "flow": FLOW,
        "fault": FAULT,
        "cut": CUT,
        "healed": None,
        "until": 103.0,
        "forecasts": {},
        "before": {},
        "programs": {},
        "bystander": bystander or FakeProcess(),
        "bystander_port": 40007,
        "reconnect": None,
        **changes,
    }
    return Watched(**fields)


def talking(until: float, step_s: float = 0.2) -> FakeProcess:
    process, at = FakeProcess(), 98.0
    while at <= until:
        process.say(at, json.dumps({"at": at, "event": "received", "bytes": 7, "total": 7}))
        at += step_s
    return process


EMPTY = {"left": Side([], []), "right": Side([], [])}
bystander_of: Callable[..., Any] = collecting._bystander


def test_a_bystander_that_talks_to_the_end_is_unharmed() -> None:
    seen = bystander_of(watched(talking(103.0)), EMPTY)

    assert (seen.alive, seen.lost) == (True, 0)
    assert seen.longest_gap_s == pytest.approx(0.2)


def test_silence_at_the_end_is_a_gap_too() -> None:
    assert bystander_of(watched(talking(100.5)), EMPTY).longest_gap_s == pytest.approx(2.6, abs=0.11)


def test_silence_long_before_the_cut_is_none() -> None:
    process = talking(103.0)
    process.lines[:] = [line for line in process.lines if not 98.1 < line.at < 99.5]

    assert bystander_of(watched(process), EMPTY).longest_gap_s == pytest.approx(0.2)


@pytest.mark.parametrize("event", ["error", "eof", "closed"])
def test_a_bystander_that_was_told_anything_is_dead(event: str) -> None:
    process = talking(103.0)
    process.say(102.0, json.dumps({"at": 102.0, "event": event}))

    assert not bystander_of(watched(process), EMPTY).alive


def test_a_bystander_that_never_talked_or_has_exited_is_dead() -> None:
    exited = talking(103.0)
    exited.exit(102.9)

    assert not bystander_of(watched(exited), EMPTY).alive
    assert not bystander_of(watched(FakeProcess()), EMPTY).alive


def test_what_the_bystander_resent_was_lost_and_a_client_port_like_its_own_is_not_its() -> None:
    its = Endpoint(SERVER.address, 40007)
    mine = [segment(at, Flag.ACK, 7)._replace(destination=its) for at in (101.0, 101.3)]
    unlucky = [segment(at, Flag.ACK, 7)._replace(source=Endpoint(CLIENT.address, 40007)) for at in (101.0, 101.3)]

    assert bystander_of(watched(talking(103.0)), {**EMPTY, "left": Side(mine, [])}).lost == 1
    assert bystander_of(watched(talking(103.0)), {**EMPTY, "left": Side(unlucky, [])}).lost == 0


def test_a_fin_of_the_flow_before_the_cut_is_found_whatever_its_direction() -> None:
    fin = segment(99.5, Flag.ACK | Flag.FIN, back=True)
    later, others = fin._replace(time_s=101.0), fin._replace(destination=Endpoint(CLIENT.address, 41000))

    assert collecting._ended_early([fin, later, others], watched()) == 1
    closing = cast("Any", type("Spec", (), {"closes": True}))
    assert collecting._ended_early([fin], watched(spec=closing)) == 0


def passages(near: list[Segment], far: list[Segment], until: float) -> tuple[Any, Any]:
    sides = {"left": Side(near, []), "right": Side(far, [])}
    forward, back = collecting._passages(sides, watched(), until)
    return forward, back


def test_who_was_on_the_way_when_the_rules_were_read_last_is_not_counted_as_missing() -> None:
    dropped, late = segment(101.0, length=7), segment(102.5, length=7, seq=8)
    forward, back = passages([dropped, late], [], until=102.0)

    assert (forward.missing, back.missing) == ((dropped,), ())


def test_a_nudge_that_comes_out_has_crossed() -> None:
    nudged = Segment(102.0, CLIENT, SERVER, 0, 0, Flag.ACK, 0, 0)
    forward, _ = passages([nudged], [nudged._replace(time_s=102.00002)], until=102.5)

    assert forward.crossed == (nudged,)
