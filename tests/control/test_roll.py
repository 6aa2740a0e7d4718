import pytest

from lab.control.refusals import AmbiguousFlow, NoSuchFlow
from lab.control.roll import Roll, Selector
from lab.testbed.ports import TrackState
from tests.control.fakes import FLOW, FLOW6, OTHER, passing


def roll(*flows: object) -> Roll:
    made = Roll()
    made.look(flows)  # type: ignore[arg-type]  # all are PassingFlow
    return made


def test_what_appeared_and_what_ended_is_told_once() -> None:
    made = Roll()

    assert made.look([passing()]) == ([passing()], [])
    assert made.look([passing(), passing(OTHER)]) == ([passing(OTHER)], [])
    assert made.look([passing(OTHER)]) == ([], [passing()])


def test_a_connection_that_is_over_does_not_pass() -> None:
    made = roll(passing())
    _, ended = made.look([passing(state=TrackState.TIME_WAIT)])

    assert ended == [passing()]
    with pytest.raises(NoSuchFlow):
        made.require(FLOW)


def test_the_kernels_dates_decide_who_is_first() -> None:
    made = roll(passing(FLOW, since=200.0), passing(OTHER, since=100.0))

    assert made.choose(Selector(5000, "first")) == OTHER
    assert made.choose(Selector(5000, "newest")) == FLOW


def test_without_dates_the_order_of_their_first_sight_does() -> None:
    made = roll(passing(OTHER, since=None))
    made.look([passing(FLOW, since=None), passing(OTHER, since=None)])

    assert made.choose(Selector(5000, "first")) == OTHER
    assert made.choose(Selector(5000, "newest")) == FLOW


def test_a_client_port_chooses_among_several() -> None:
    assert roll(passing(), passing(OTHER)).choose(Selector(5000, 40001)) == OTHER


def test_several_flows_and_no_choice_is_refused_with_all_of_them() -> None:
    with pytest.raises(AmbiguousFlow) as refused:
        roll(passing(), passing(OTHER)).choose(Selector(5000, None))

    assert [flow["client"] for flow in refused.value.facts["flows"]] == ["192.0.2.10:40000", "192.0.2.10:40001"]


@pytest.mark.parametrize("selector", [Selector(5001, None), Selector(5000, 1), Selector(5000, "first")])
def test_no_flow_is_refused_with_those_that_pass(selector: Selector) -> None:
    state = TrackState.SYN_SENT if selector.which == "first" else TrackState.ESTABLISHED
    with pytest.raises(NoSuchFlow) as refused:
        roll(passing(FLOW6, state=state)).choose(selector)

    assert refused.value.facts["flows"] == [{"client": "[2001:db8:1::10]:40000", "server": "[2001:db8:2::20]:5000"}]
