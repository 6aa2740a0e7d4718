from typing import Any

import pytest

from lab.core.flow import Direction
from lab.core.timeline import Observation, relative
from lab.report.lanes import MarkKind, lanes
from lab.report.record import EndObservation, Observed, Outcome, Record
from lab.report.timeline import Timeline
from tests.report.cases import ANCHOR, both_ways, busy_copies, outside, return_only

NOTHING = Timeline((), 0)


def timeline(observations: list[Observation]) -> Timeline:
    return Timeline(tuple(relative(observations, ANCHOR)), 0)


def segment(t: float, **detail: Any) -> Observation:
    return Observation(ANCHOR + t, "router-left", "segment", {"direction": "forward", "class": "first", **detail})


def record_with(seen: EndObservation) -> Record:
    return Record(outcome=Outcome.INVALID, backend="netns", observation=Observed(client=seen))


def test_copies_of_the_record_are_classified_by_the_timeline() -> None:
    record, observations = both_ways()
    client, server = lanes(record, timeline(observations))
    kinds = [mark.kind for mark in client.marks if mark.t_s > 0]
    assert kinds == [MarkKind.FIRST_LOST, MarkKind.TAIL_LOSS_PROBE, *[MarkKind.TIMEOUT_COPY] * 15]
    assert [mark.t_s for mark in server.marks] == pytest.approx([0.284, *busy_copies(0.284)])


def test_classes_in_the_record_need_no_timeline() -> None:
    seen = EndObservation(copy_times_s=(0.2, 0.4), copy_classes=("tail-loss-probe", "novelty"))
    client, _ = lanes(record_with(seen), NOTHING)
    assert [mark.kind for mark in client.marks] == [MarkKind.TAIL_LOSS_PROBE, MarkKind.COPY]


def test_a_copy_that_nobody_classified_is_still_a_mark() -> None:
    record, _ = both_ways()
    client, _ = lanes(record, NOTHING)
    assert [mark.kind for mark in client.marks] == [MarkKind.FIRST_LOST, *[MarkKind.COPY] * 16]


def test_probes_come_from_the_timeline() -> None:
    client, server = lanes(record_with(EndObservation()), timeline([segment(3.0, **{"class": "keepalive-probe"})]))
    assert [(mark.t_s, mark.kind) for mark in client.marks] == [(3.0, MarkKind.KEEPALIVE_PROBE)]
    assert server.marks == ()


@pytest.mark.parametrize(
    "other",
    [
        segment(1.0, flow="bystander"),
        segment(1.0, direction="sideways"),
        segment(1.0, **{"class": "tap-duplicate"}),
        segment(1.0, **{"class": ["first"]}),
        Observation(ANCHOR + 1.0, "router-right", "segment", {"direction": "forward", "class": "first"}),
        Observation(ANCHOR + 1.0, "router-left", "segment", {}),
        Observation(ANCHOR + 1.0, "router-left", "line", {"direction": "forward", "class": "first"}),
    ],
)
def test_what_the_end_did_not_send_into_the_router_is_no_mark(other: Observation) -> None:
    client, server = lanes(record_with(EndObservation()), timeline([other]))
    assert client.marks == server.marks == ()


def test_talk_is_thinned_and_copies_never() -> None:
    talk = [segment(-5 + index / 1000) for index in range(3000)]
    copies = tuple(0.2 + index / 100 for index in range(1000))
    client, _ = lanes(record_with(EndObservation(copy_times_s=copies)), timeline(talk))
    assert sum(mark.kind is MarkKind.TALK for mark in client.marks) == 300
    assert sum(mark.kind is MarkKind.COPY for mark in client.marks) == 1000


def test_only_the_cut_direction_is_dark() -> None:
    client, server = lanes(return_only()[0], NOTHING)
    assert (client.direction, client.dark) == (Direction.FORWARD, False)
    assert (server.direction, server.dark) == (Direction.RETURN, True)


def test_a_lane_spans_its_prediction_too() -> None:
    record, _ = both_ways()
    client, _ = lanes(record, NOTHING)
    assert client.latest_s == pytest.approx(15.271)
    assert client.earliest_s == pytest.approx(0.031 + 0.203)


def test_only_a_server_can_be_outside() -> None:
    client, server = lanes(outside()[0], NOTHING)
    assert (client.outside, server.outside, server.predicted) == (False, True, None)
    assert [lane.outside for lane in lanes(both_ways()[0], NOTHING)] == [False, False]
