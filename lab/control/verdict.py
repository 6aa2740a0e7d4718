"""Whether the hole was a hole: what the router alone can prove of a fault.

CONFIRMED says: in each direction that was cut and had any packets, the rules dropped exactly those that entered the
router and never left it; nothing of the flow came through; nobody was told. It says nothing of what the two ends made
of it: for that somebody has to look into them, which is what ``lab run`` does.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lab.control.controller import CALM_S, Controller
from lab.control.examination import Evidence, Question, Way, examine
from lab.control.faults import FaultRecord
from lab.core.errors import InvalidRun
from lab.core.fault import Matched
from lab.core.flow import Direction
from lab.core.hole import Dark
from lab.core.verdict import Check, Outcome, why
from lab.testbed.ports import CaptureSummary

CLOCK_STEP_S = 0.010
"""How far wall and monotonic time may move against each other meanwhile, as in a run."""

_RESTING_TRIES = 20
"""Readings of the rules until two in a row agree."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was proved, and what was seen."""

    record: FaultRecord
    outcome: Outcome
    """CONFIRMED or INVALID."""

    reason: str | None
    """Which proofs failed."""

    checks: tuple[Check, ...]
    evidence: Evidence
    offset: float
    """Unix time minus CLOCK_MONOTONIC."""

    captured: CaptureSummary

    @property
    def came_back(self) -> bool | None:
        """Whether the flow talks both ways again; None while it is cut."""
        if self.record.in_force:
            return None
        return all(way.back_at is not None for way in self.evidence.ways.values()) and not self.evidence.reset_after


def verdict_on(controller: Controller, name: str) -> Verdict:
    """The verdict on a fault, as of now.

    Raises:
        UnknownFault: no such id.
        NoCapture: the capture does not run.
        InvalidRun: a capture cannot be read, or the rules do not rest.
    """
    record, until = _rested(controller, name)
    captured = controller.recording.summary()
    offset = record.clock.offset
    healed = math.inf if record.healed is None else record.healed.began_at + offset
    dark = Dark(record.cut.began_at + offset, record.cut.done_at + offset, healed)
    evidence = examine(
        Question(
            fault=record.fault,
            files={side: tuple(one.path for one in files) for side, files in captured.pieces.items()},
            dark=dark,
            since=max(dark.began_s - CALM_S, controller.dark_before(record) + offset),
            until=until + offset,
        )
    )
    checks = tuple(_checks(record, captured, evidence))
    reason = why(checks)
    outcome = Outcome.CONFIRMED if reason is None else Outcome.INVALID
    return Verdict(record, outcome, reason, checks, evidence, offset, captured)


def _rested(controller: Controller, name: str) -> tuple[FaultRecord, float]:
    """The fault, and an instant up to which its reading is all that was dropped, CLOCK_MONOTONIC."""
    for _ in range(_RESTING_TRIES):
        record = controller.fault(name)
        if record.healed is not None:
            return record, record.healed.done_at
        first, at = record.matched, time.monotonic()
        if controller.fault(name).matched == first and record.in_force:
            return record, at
    raise InvalidRun(f"A rule that rests for two readings was expected; {_RESTING_TRIES} times it had matched.")


def _checks(record: FaultRecord, captured: CaptureSummary, found: Evidence) -> Iterator[Check]:
    ways = found.ways
    yield _complete(record, captured)
    yield Check("open-at-cut", not found.ended_early, f"{found.ended_early} FIN or RST of the flow before it was cut")
    for direction in record.fault.direction.directions:
        yield from _rule(direction, record.matched, ways[direction])
    cut = [ways[direction] for direction in record.fault.direction.directions]
    total = record.matched.forward + record.matched.return_
    yield Check("rules-matched", total > 0, f"the rules dropped {total} packets (at least 1)")
    crossed = sum(way.crossed for way in cut)
    rst, fin = sum(way.crossed_rst for way in cut), sum(way.crossed_fin for way in cut)
    yield Check("nothing-crossed", not crossed, f"{crossed} segments came through the hole, {rst} RST, {fin} FIN")
    strangers = sum(way.strangers for way in cut)
    yield Check("no-strangers", not strangers, f"{strangers} segments came out that never went in")
    yield Check("no-icmp", not found.icmp, f"{found.icmp} ICMP messages about the flow while it was dark")
    moved_s = abs(captured.clocks[-1].offset - record.clock.offset)
    detail = f"wall and monotonic time moved {moved_s * 1000:.3f} ms against each other"
    yield Check("clocks-steady", moved_s <= CLOCK_STEP_S, detail)


def _complete(record: FaultRecord, captured: CaptureSummary) -> Check:
    dropped = sum(captured.dropped.values()) - record.lost_before
    since = max((files[0].since for files in captured.pieces.values() if files), default=math.inf)
    calm_s = record.cut.began_at - since
    held = f"held since {calm_s:.2f} s before the cut" if calm_s >= 0 else "not held from the cut on"
    detail = f"{dropped} packets dropped, {held} (at least {CALM_S:g} s)"
    return Check("capture-complete", dropped == 0 and calm_s >= CALM_S, detail)


def _rule(direction: Direction, matched: Matched, way: Way) -> Iterator[Check]:
    count = matched.of(direction)
    idle = _is_idle(count, way)
    words = "nothing was sent this way since the cut" if idle else f"the rule dropped {count} packets (at least 1)"
    yield Check(f"rule-matched-{direction.value}", count > 0 or idle, words)
    yield Check(
        f"rule-equals-capture-{direction.value}",
        count == way.missing and not way.early,
        f"the rule dropped {count}; {way.missing} entered and never came out, {way.early} of them before the cut",
    )


def _is_idle(count: int, way: Way) -> bool:
    return not (count or way.missing or way.crossed)
