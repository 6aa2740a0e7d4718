"""The proofs that a run owes, and the prediction held against the measurement.

Proofs come first: a run that fails one is INVALID, whatever the clock said.
"""

from collections.abc import Iterable, Iterator

from lab.core.aftermath import Aftermath, judge
from lab.core.aftermath_rules import Observed
from lab.core.flow import Direction
from lab.core.segment_class import Trigger
from lab.core.verdict import Check, Kind
from lab.run.findings import EndFinding, Findings

CALM_BEFORE_CUT_S = 1.0
"""For how long before the cut the captures must be complete (design, mechanics 4)."""

CLOCK_STEP_S = 0.010
"""How far wall and monotonic time may move against each other in a run: less than the 20 ms of a dated death, more
than slewing does in a minute (500 ppm)."""

DATED_WITHIN_S = 0.020
"""How closely a death has to be dated, unless the verdict is the same at both ends of the interval."""

WITNESS_S = 0.030
"""How far the sampled death and the program's own error may lie apart: the dating, and a process's wake-up."""

DELAYED_ACK_S = 0.06
"""How long after its arrival a segment may be acknowledged: TCP_DELACK_MIN is 40 ms, and a busy machine."""

DISTURBABLE = ("capture-complete", "bystander-unharmed", "clocks-steady", "death-dated", "witnesses-agree")
"""Ends of the names of proofs that a busy machine can spoil; the others say that something is wrong."""

BYSTANDER_GAP_S = 2.0
"""Ten of its intervals: longer silence means that something else than the fault disturbed the path."""


def disturbed(checks: Iterable[Check]) -> bool:
    """Whether all the proofs that failed are of the kind that a busy machine can spoil: the run is worth repeating."""
    failed = [check.name for check in checks if check.kind is Kind.PROOF and not check.ok]
    return bool(failed) and all(name.endswith(DISTURBABLE) for name in failed)


def proofs(found: Findings) -> list[Check]:
    """Every proof, passed or failed."""
    checks = [
        _capture_complete(found),
        *(_rules_bit(found, passage.direction) for passage in found.passages),
        *(_rules_agree(found, passage.direction) for passage in found.passages),
        _nothing_crossed(found),
        _no_strangers(found),
        _no_icmp(found),
        _bystander(found),
        _clocks(found),
    ]
    for end in found.ends:
        checks.extend(_end_proofs(end))
    return checks


def _capture_complete(found: Findings) -> Check:
    capture = found.capture
    dropped = sum(capture.dropped.values())
    calm_s = found.cut.began_at - capture.started_at
    ok = dropped == 0 and calm_s >= CALM_BEFORE_CUT_S and capture.stopped_at >= found.watched_until
    return Check(
        "capture-complete",
        ok,
        f"{sum(capture.packets.values())} packets written, {dropped} dropped, begun {calm_s:.2f} s before the cut "
        f"(at least {CALM_BEFORE_CUT_S:g} s)",
    )


def _rules_bit(found: Findings, direction: Direction) -> Check:
    count = found.matched_in(direction)
    return Check(f"rule-matched-{direction.value}", count > 0, f"the rule dropped {count} packets (at least 1)")


def _rules_agree(found: Findings, direction: Direction) -> Check:
    passage = next(p for p in found.passages if p.direction is direction)
    count, missing = found.matched_in(direction), len(passage.missing)
    early = sum(1 for s in passage.missing if s.time_s < found.cut.began_at)
    return Check(
        f"rule-equals-capture-{direction.value}",
        count == missing and not early,
        f"the rule dropped {count}; {missing} of {passage.entered} entered and never came out, {early} before the cut",
    )


def _nothing_crossed(found: Findings) -> Check:
    crossed = sum(len(passage.crossed) for passage in found.passages)
    return Check("nothing-crossed", crossed == 0, f"{crossed} segments came through the hole")


def _no_strangers(found: Findings) -> Check:
    strangers = sum(len(passage.strangers) for passage in found.passages)
    return Check("no-strangers", strangers == 0, f"{strangers} segments came out that never went in")


def _no_icmp(found: Findings) -> Check:
    return Check("no-icmp", found.icmp == 0, f"{found.icmp} ICMP errors while it was dark")


def _bystander(found: Findings) -> Check:
    seen = found.bystander
    ok = seen.alive and seen.lost == 0 and seen.longest_gap_s <= BYSTANDER_GAP_S
    state = "alive" if seen.alive else "dead"
    return Check(
        "bystander-unharmed",
        ok,
        f"{state}, {seen.lost} segments lost, longest silence {seen.longest_gap_s:.2f} s (at most {BYSTANDER_GAP_S:g})",
    )


def _clocks(found: Findings) -> Check:
    offsets = [pair.offset for pair in found.capture.clocks]
    moved_s = max(offsets) - min(offsets)
    ok = len(offsets) >= 2 and moved_s <= CLOCK_STEP_S
    return Check("clocks-steady", ok, f"wall and monotonic time moved {moved_s * 1000:.3f} ms against each other")


def _end_proofs(end: EndFinding) -> Iterator[Check]:
    yield Check(
        f"{end.name}-counters-agree",
        dict(end.counted) == dict(end.counters),
        ", ".join(f"{seen} {what} in the capture, {end.counters[what]} counted" for what, seen in end.counted.items()),
    )
    yield Check(
        f"{end.name}-program-unharmed",
        not end.killed,
        "its program was killed from outside (SIGKILL)" if end.killed else "nobody killed its program",
    )
    if end.fate.gone_at is None:
        return
    within = end.fate.within_s
    yield Check(
        f"{end.name}-death-dated",
        within <= DATED_WITHIN_S or not _straddles(end),
        f"known to {within * 1000:.0f} ms either way (at most {DATED_WITHIN_S * 1000:.0f})",
    )
    if end.program_error_at is not None:
        apart_s = abs(end.program_error_at - end.fate.gone_at)
        yield Check(
            f"{end.name}-witnesses-agree",
            apart_s <= WITNESS_S + within,
            f"the program's error and the socket's end lie {apart_s * 1000:.0f} ms apart",
        )


def _straddles(end: EndFinding) -> bool:
    """Whether the verdict depends on where in its interval the death lies."""
    if end.window is None or end.fate.gone_at is None:
        return False
    earliest, latest = end.fate.gone_at - end.fate.within_s, end.fate.gone_at + end.fate.within_s
    return any(earliest < edge < latest for edge in end.window)


def predictions(found: Findings) -> list[Check]:
    """The prediction of each end against what came."""
    checks: list[Check] = []
    for end in found.ends:
        checks.extend(_end_predictions(end, found))
    return checks


def _end_predictions(end: EndFinding, found: Findings) -> Iterator[Check]:
    def check(what: str, ok: bool, detail: str, kind: Kind = Kind.PREDICTION) -> Check:
        return Check(f"{end.name}-{what}", ok, detail, kind)

    low, high = end.branch.copies
    copies = len(end.traffic.copies)
    due = end.window
    gone_at = end.fate.gone_at
    cut_at = found.cut.done_at
    if found.healed is not None and end.sends and (due is None or found.healed.done_at < due[0]):
        yield from _healed(end, found)
        return
    if end.let_go_at is not None and (due is None or end.let_go_at < due[0]):
        yield check("alive", True, f"its program closed it at {end.let_go_at - cut_at:.3f} s, before anything was due")
        return
    if gone_at is None:
        closed = due is not None and found.watched_until > due[1]
        yield check("alive", not closed, _still_there(end, found))
        if due is not None and not closed:
            yield check("horizon", False, f"confirmed up to {found.horizon_s:.2f} s only", Kind.NOTE)
        yield check("copies", high is None or copies <= high, f"{copies} copies, {low} to {_count(high)} predicted")
        return
    if due is None:
        yield check("alive", False, f"nothing was due, but the kernel gave up at {gone_at - cut_at:.3f} s")
        return
    within = end.fate.within_s
    yield check(
        "window",
        due[0] - within <= gone_at <= due[1] + within,
        f"gave up at {gone_at - cut_at:.3f} s, predicted {due[0] - cut_at:.3f} to {due[1] - cut_at:.3f} s",
    )
    cause = end.branch.cause.value
    yield check("cause", end.fate.cause == cause, f"{end.fate.cause}, predicted {cause}")
    after = aftermath(end, gone_at)
    yield check("rule", after.holds, after.sentence)
    yield check(
        "copies", low <= copies <= (copies if high is None else high), f"{copies}, {low} to {_count(high)} predicted"
    )


def aftermath(end: EndFinding, gone_at: float) -> Aftermath:
    """Given the copies seen, was the death the first expiry at or past the bound?"""
    origin = end.anchor or 0.0
    copies = end.traffic.copies
    within = end.fate.within_s
    return judge(
        end.forecast.situation(sends=end.sends),
        Observed(
            copies_s=tuple(c.segment.time_s - origin for c in copies),
            # The latest instant that it can have been; it may have been earlier by the whole width.
            death_s=gone_at + within - origin,
            loss_probe=bool(copies) and copies[0].trigger is Trigger.PROBE,
            tolerance_s=DATED_WITHIN_S + 2 * within,
        ),
    )


def _healed(end: EndFinding, found: Findings) -> Iterator[Check]:
    """A heal before the give-up: delivery at the next backed-off copy, and nobody gives up."""
    assert found.healed is not None
    after = [c.segment.time_s for c in end.traffic.copies if c.segment.time_s > found.healed.began_at]
    recovered, anchor = end.traffic.recovered_at, end.anchor
    planned = next(
        (
            c.window_s
            for c in end.branch.copy_times
            if anchor is not None and anchor + c.window_s[1] > found.healed.done_at
        ),
        None,
    )
    ok = bool(after) and recovered is not None and recovered - after[0] < DELAYED_ACK_S and end.fate.gone_at is None
    if planned is not None and after and anchor is not None:
        ok = ok and after[0] - anchor <= planned[1]
    seen = "never" if recovered is None else f"{recovered - found.healed.done_at:.3f} s after the heal"
    copy = "no copy came" if not after else f"first copy {after[0] - found.healed.done_at:.3f} s after it"
    yield Check(f"{end.name}-recovery", ok, f"delivered {seen}; {copy}", Kind.PREDICTION)


def _still_there(end: EndFinding, found: Findings) -> str:
    due = end.window
    predicted = "never" if due is None else f"{due[0] - found.cut.done_at:.3f} to {due[1] - found.cut.done_at:.3f} s"
    return f"still there at {found.horizon_s:.2f} s, predicted to give up {predicted}"


def _count(high: int | None) -> str:
    return "any number" if high is None else str(high)
