"""What makes a fault INVALID, one broken proof at a time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.control import verdict as judging
from lab.control.controller import Controller
from lab.control.examination import Evidence, Question, Way
from lab.control.refusals import UnknownFault
from lab.control.verdict import Verdict, verdict_on
from lab.core.errors import InvalidRun
from lab.core.fault import Cut, Fault, Matched
from lab.core.flow import Direction
from lab.core.timeline import ClockPair
from lab.core.verdict import Outcome
from lab.testbed.ports import CaptureSummary
from tests.control.fakes import FLOW, FakeRouter

WAY = Way(
    missing=5,
    early=0,
    crossed=0,
    crossed_rst=0,
    crossed_fin=0,
    strangers=0,
    first_lost_at=1.0,
    copies_at=(),
    back_at=2.0,
)
GOOD = Evidence(ways=dict.fromkeys(Direction, WAY), ended_early=0, icmp=0, reset_after=False)

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The verdict on a cut of five packets each way, with this evidence and this capture."""

    def judged(
        evidence: Evidence = GOOD,
        *,
        drops: Matched = Matched(5, 5),  # noqa: B008 - it never changes
        direction: Cut = Cut.BOTH,
        capture: Callable[[CaptureSummary], CaptureSummary] = lambda summary: summary,
        heal: bool = True,
    ) -> Verdict:
        flush = router.flush_capture
        monkeypatch.setattr(judging, "examine", lambda _: evidence)
        monkeypatch.setattr(router, "flush_capture", lambda: capture(flush()))
        record, _ = controller.cut(FLOW, direction=direction)
        router.drops[Fault(FLOW, direction)] = drops
        if heal:
            controller.heal(record.name)
        return verdict_on(controller, record.name)

    return judged


def broken(verdict: Verdict) -> list[str]:
    assert (verdict.outcome is Outcome.CONFIRMED) is (verdict.reason is None)
    return [check.name for check in verdict.checks if not check.ok]


def forward(**changes: object) -> Evidence:
    return replace(GOOD, ways={**GOOD.ways, Direction.FORWARD: replace(WAY, **changes)})  # type: ignore[arg-type]


def test_a_hole_that_is_one_is_confirmed(judge: Judge) -> None:
    verdict = judge()

    assert broken(verdict) == []
    assert (verdict.outcome, verdict.came_back) == (Outcome.CONFIRMED, True)


@pytest.mark.parametrize(
    ("evidence", "name"),
    [
        (forward(missing=4), "rule-equals-capture-forward"),
        (forward(early=1), "rule-equals-capture-forward"),
        (forward(crossed=1), "nothing-crossed"),
        (forward(strangers=1), "no-strangers"),
        (replace(GOOD, icmp=1), "no-icmp"),
        (replace(GOOD, ended_early=1), "open-at-cut"),
    ],
)
def test_each_proof_that_fails_makes_it_invalid(judge: Judge, evidence: Evidence, name: str) -> None:
    assert broken(judge(evidence)) == [name]


def test_a_rule_that_matched_nothing_although_packets_came_is_invalid(judge: Judge) -> None:
    assert broken(judge(forward(crossed=5, missing=0), drops=Matched(0, 5))) == [
        "rule-matched-forward",
        "nothing-crossed",
    ]


def test_a_direction_without_packets_proves_nothing_and_breaks_nothing(judge: Judge) -> None:
    assert broken(judge(forward(missing=0), drops=Matched(0, 5))) == []
    assert broken(judge(forward(missing=0), drops=Matched(0, 0), direction=Cut.FORWARD)) == ["rules-matched"]


def test_a_direction_that_was_not_cut_is_not_asked_about(judge: Judge) -> None:
    assert broken(judge(forward(crossed=9, strangers=9, missing=0), drops=Matched(0, 5), direction=Cut.RETURN)) == []


def test_a_capture_that_lost_packets_is_invalid(judge: Judge) -> None:
    def lost(summary: CaptureSummary) -> CaptureSummary:
        return replace(summary, dropped={"left": 1, "right": 0})

    assert broken(judge(capture=lost)) == ["capture-complete"]


def test_packets_that_were_lost_long_before_the_cut_are_nothing_to_it(judge: Judge, controller: Controller) -> None:
    def lost(summary: CaptureSummary) -> CaptureSummary:
        return replace(summary, dropped={"left": 1, "right": 0})

    summary = lost(controller.recording.summary())
    controller.recording.note(replace(summary, stopped_at=summary.stopped_at - 2))

    assert broken(judge(capture=lost)) == []


def test_a_capture_that_began_just_before_the_cut_is_invalid(judge: Judge) -> None:
    def late(summary: CaptureSummary) -> CaptureSummary:
        since = summary.stopped_at - 0.5
        files = {side: tuple(replace(one, since=since) for one in files) for side, files in summary.pieces.items()}
        return replace(summary, pieces=files)

    assert broken(judge(capture=late)) == ["capture-complete"]


def test_a_clock_that_was_set_meanwhile_is_invalid(judge: Judge) -> None:
    def stepped(summary: CaptureSummary) -> CaptureSummary:
        last = summary.clocks[-1]
        return replace(summary, clocks=(*summary.clocks[:-1], ClockPair(last.wall + 1, last.monotonic)))

    assert broken(judge(capture=stepped)) == ["clocks-steady"]


@pytest.mark.parametrize(
    ("evidence", "heal", "came_back"),
    [
        (GOOD, False, None),
        (forward(back_at=None), True, False),
        (replace(GOOD, reset_after=True), True, False),
    ],
)
def test_a_flow_came_back_when_both_ways_did_and_nobody_reset_it(
    judge: Judge, evidence: Evidence, heal: bool, came_back: bool | None
) -> None:
    assert judge(evidence, heal=heal).came_back is came_back


def test_a_rule_that_never_rests_is_said_so(
    controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = controller.cut(FLOW)
    matched = router.matched

    def busy(fault: Fault) -> Matched:
        router.drop(fault, 1, 0)
        return matched(fault)

    monkeypatch.setattr(router, "matched", busy)
    with pytest.raises(InvalidRun, match="rests for two readings"):
        verdict_on(controller, record.name)


def test_the_question_spans_from_the_earlier_heal_to_the_last_reading(
    controller: Controller, router: FakeRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Question] = []

    def examine(question: Question) -> Evidence:
        asked.append(question)
        return GOOD

    monkeypatch.setattr(judging, "examine", examine)
    first, _ = controller.cut(FLOW)
    healed = controller.heal(first.name).healed
    second, _ = controller.cut(FLOW)
    verdict_on(controller, second.name)
    (question,) = asked

    assert healed is not None
    assert question.since == pytest.approx(second.unix(healed.done_at))
    assert question.dark.healed_s == float("inf")
    assert question.until >= question.dark.done_s
    assert question.files["left"] == (Path(str(router.folder)) / "left.pcapng",)


def test_an_unknown_fault_has_no_verdict(controller: Controller) -> None:
    with pytest.raises(UnknownFault):
        verdict_on(controller, "nix")
