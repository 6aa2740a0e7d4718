"""Counters and rules at rest, and nudges that show the rules bite."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.core.errors import InvalidRun
from lab.core.fault import Cut, Matched, Placement
from lab.run.settle import nudge, nudge_healed, settled_counters, settled_matched
from tests.run.fakes import CLIENT, FAULT, SERVER, FakeNode, FakeRouter, nodes

RETRANSMITTED = "TcpRetransSegs"


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


def matched(*forward: int) -> Iterator[Matched]:
    return itertools.chain((Matched(n, 0) for n in forward), itertools.repeat(Matched(forward[-1], 0)))


def test_rules_are_read_when_they_rest() -> None:
    assert settled_matched(nodes(router=FakeRouter(readings=matched(1, 2, 3, 3)))[1], FAULT)[0] == Matched(3, 0)


def test_rules_that_never_rest_make_the_run_invalid() -> None:
    busy = FakeRouter(readings=matched(*range(1000)))

    with pytest.raises(InvalidRun, match="A rule that rests"):
        settled_matched(nodes(router=busy)[1], FAULT)


@pytest.mark.parametrize("cut", Cut)
def test_every_direction_is_nudged_by_its_sender_and_those_that_are_cut_are_waited_for(cut: Cut) -> None:
    left = [Matched(0, 0), Matched(0, 0), *([Matched(1, 0), Matched(1, 1)] if cut is Cut.BOTH else [Matched(1, 1)])]
    readings = iter(left)
    made, testbed = nodes(router=FakeRouter(readings=readings))
    nudge(testbed, replace(FAULT, direction=cut))

    assert (made.client.nudges, made.server.nudges) == ([(CLIENT, SERVER)], [(SERVER, CLIENT)])
    assert list(readings) == []


def test_after_a_heal_both_ways_are_nudged_and_no_rule_is_waited_for() -> None:
    made, testbed = nodes(router=FakeRouter(readings=iter(())))
    nudge_healed(testbed, FAULT)

    assert (made.client.nudges, made.server.nudges) == ([(CLIENT, SERVER)], [(SERVER, CLIENT)])


def test_an_end_that_cannot_send_it_makes_the_run_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    made, testbed = nodes(router=FakeRouter(readings=matched(0, 0)))

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(made.server, "nudge", refuse)
    with pytest.raises(InvalidRun, match=r"server's own node .* \(Operation not permitted\)"):
        nudge(testbed, FAULT)


@pytest.mark.parametrize(("cut", "nudged"), [(Cut.BOTH, True), (Cut.FORWARD, True), (Cut.RETURN, False)])
def test_nothing_is_sent_on_behalf_of_an_end_that_is_outside(cut: Cut, nudged: bool) -> None:
    made, testbed = nodes(router=FakeRouter(readings=(Matched(n, 0) for n in itertools.count())))
    nudge(testbed, replace(FAULT, direction=cut), outside=True)

    assert made.client.nudges == ([(CLIENT, SERVER)] if nudged else [])
    assert made.server.nudges == []


def test_a_nudge_that_no_rule_has_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = itertools.count(0.0, 0.2)
    monkeypatch.setattr("lab.run.settle.time.monotonic", lambda: next(instants))
    made, testbed = nodes()
    nudge(testbed, FAULT)

    assert made.client.nudges


def test_a_drop_in_the_senders_own_output_is_not_nudged() -> None:
    made, testbed = nodes()
    nudge(testbed, replace(FAULT, direction=Cut.FORWARD, placement=Placement.OWN_OUTPUT))

    assert (made.client.nudges, made.server.nudges) == ([], [(SERVER, CLIENT)])
