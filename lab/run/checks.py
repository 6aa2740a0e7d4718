"""The proofs that a run owes, and the prediction held against the measurement.

Proofs come first: a run that fails one is INVALID, whatever the clock said.
"""

from collections.abc import Iterable, Iterator

from lab.core.aftermath import Aftermath, judge
from lab.core.aftermath_rules import Observed
from lab.core.flow import Direction
from lab.core.prediction import CopyKind
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

DISTURBABLE = (
    "capture-complete",
    "bystander-unharmed",
    "clocks-steady",
    "death-dated",
    "witnesses-agree",
    "watched",
    "undisturbed",
)
"""Ends of the names of proofs that a busy machine can spoil; the others say that something is wrong."""

LATE_S = 0.010
"""How late a sampler may have been woken for a failed prediction to count: 2.5 ticks at HZ 250, about what the model
allows a timer's handler."""

UNSEEN_S = 1.0
"""How long before the end of the watch the last look at a living socket may be: four of the sampler's longest waits."""

BYSTANDER_GAP_S = 2.0
"""Ten of its intervals: longer silence means that something else than the fault disturbed the path."""


def judged(found: Findings) -> list[Check]:
    """Every proof and every prediction; a prediction that failed on a busy machine has proved nothing."""
    predicted = predictions(found)
    failed = {check.name.partition("-")[0] for check in predicted if check.kind is Kind.PREDICTION and not check.ok}
    calm = [
        Check(
            f"{end.name}-undisturbed",
            end.late_s <= LATE_S,
            f"a prediction failed while processes waited up to {end.late_s * 1000:.0f} ms for a processor "
            f"(at most {LATE_S * 1000:.0f})",
        )
        for end in found.ends
        if end.name in failed
    ]
    return [*proofs(found), *calm, *predicted]


def disturbed(checks: Iterable[Check]) -> bool:
    """Whether all the proofs that failed are of the kind that a busy machine can spoil: the run is worth repeating."""
    failed = [check.name for check in checks if check.kind is Kind.PROOF and not check.ok]
    return bool(failed) and all(name.endswith(DISTURBABLE) for name in failed)


def proofs(found: Findings) -> list[Check]:
    """Every proof, passed or failed."""
    checks = [
        _capture_complete(found),
        _open_at_cut(found),
        *(_rules_bit(found, passage.direction) for passage in found.passages),
        *(_rules_agree(found, passage.direction) for passage in found.passages),
        _nothing_crossed(found),
        _no_strangers(found),
        _no_icmp(found),
        _bystander(found),
        _clocks(found),
    ]
    for end in found.ends:
        checks.extend(_end_proofs(end, found))
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


def _open_at_cut(found: Findings) -> Check:
    count = found.ended_early
    return Check("open-at-cut", count == 0, f"{count} FIN or RST of the flow passed before it was cut")


def _rules_bit(found: Findings, direction: Direction) -> Check:
    count = found.matched.of(direction)
    return Check(f"rule-matched-{direction.value}", count > 0, f"the rule dropped {count} packets (at least 1)")


def _rules_agree(found: Findings, direction: Direction) -> Check:
    passage = next(p for p in found.passages if p.direction is direction)
    count, missing = found.matched.of(direction), len(passage.missing)
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


def _end_proofs(end: EndFinding, found: Findings) -> Iterator[Check]:
    if end.forecast.sample is not None or end.traffic.lost_at is not None:
        yield _watched(end, found)
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


def _watched(end: EndFinding, found: Findings) -> Check:
    """Nobody can say that a socket lived on who did not look."""
    if end.seen_until is None:
        return Check(f"{end.name}-watched", False, "its socket was never seen")
    gap_s = found.watched_until - end.seen_until
    ended = end.fate.gone_at is not None or end.fate.closed_at is not None
    return Check(
        f"{end.name}-watched",
        ended or gap_s <= UNSEEN_S,
        f"its socket was seen until {max(gap_s, 0.0):.2f} s before the end (at most {UNSEEN_S:g}, unless it had ended)",
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
    due, gone_at = end.window, end.fate.gone_at
    if _healed_in_time(end, found):
        yield from _recovery(end, found) if end.sends else _lived_on(end, found)
    elif end.let_go_at is not None:
        at_s = end.let_go_at - found.cut.done_at
        in_time = due is None or end.let_go_at <= due[1] + DATED_WITHIN_S
        what = "before its kernel was due" if in_time else f"although its kernel was due {_when(end, found)}"
        yield _predicted(end, "alive", in_time, f"its program closed it at {at_s:.3f} s, {what}")
    elif gone_at is None:
        yield from _lived(end, found)
    elif due is None:
        at_s = gone_at - found.cut.done_at
        yield _predicted(end, "alive", False, f"nothing was due, but the kernel gave up at {at_s:.3f} s")
    else:
        yield from _died(end, found, gone_at, due)


def _predicted(end: EndFinding, what: str, ok: bool, detail: str) -> Check:
    return Check(f"{end.name}-{what}", ok, detail, Kind.PREDICTION)


def _healed_in_time(end: EndFinding, found: Findings) -> bool:
    """Whether the path came back before the kernel had to give up; inside the window either may come first."""
    due = end.window
    if found.healed is None:
        return False
    return due is None or found.healed.done_at < due[0] or (end.fate.gone_at is None and found.healed.done_at <= due[1])


def _lived(end: EndFinding, found: Findings) -> Iterator[Check]:
    """The kernel had not given up when the watch ended: right where nothing was due yet."""
    due = end.window
    overdue = due is not None and found.watched_until > due[1] + DATED_WITHIN_S
    still = f"still there at {found.horizon_s:.2f} s, predicted to give up {_when(end, found)}"
    yield _predicted(end, "alive", not overdue, still)
    if due is not None and not overdue:
        detail = f"confirmed up to {found.horizon_s:.2f} s only, predicted to give up {_when(end, found)}"
        yield Check(f"{end.name}-horizon", False, detail, Kind.NOTE)
    copies, low, high = len(end.traffic.copies), _copies_due(end, found), end.branch.copies[1]
    enough = low <= copies and (high is None or copies <= high)
    yield _predicted(end, "copies", enough, f"{copies} copies, {low} to {_count(high)} predicted by then")


def _copies_due(end: EndFinding, found: Findings) -> int:
    """How many copies must have left when the watch ended; a tail-loss probe may have carried new data instead."""
    anchor = end.anchor
    if anchor is None:
        return 0
    sent = [c for c in end.branch.copy_times if anchor + c.window_s[1] + DATED_WITHIN_S < found.watched_until]
    return sum(1 for copy in sent if copy.kind is not CopyKind.TAIL_LOSS_PROBE)


def _died(end: EndFinding, found: Findings, gone_at: float, due: tuple[float, float]) -> Iterator[Check]:
    """The kernel gave up: in the window, for the reason, by the rule, after as many copies."""
    within, at_s = end.fate.within_s, gone_at - found.cut.done_at
    in_window = due[0] - within <= gone_at <= due[1] + within
    yield _predicted(end, "window", in_window, f"gave up at {at_s:.3f} s, predicted {_when(end, found)}")
    cause = end.branch.cause.value
    yield _predicted(end, "cause", end.fate.cause == cause, f"{end.fate.cause}, predicted {cause}")
    after = aftermath(end, gone_at)
    yield _predicted(end, "rule", after.holds, after.sentence)
    copies, (low, high) = len(end.traffic.copies), end.branch.copies
    enough = low <= copies and (high is None or copies <= high)
    yield _predicted(end, "copies", enough, f"{copies}, {low} to {_count(high)} predicted")


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


def _recovery(end: EndFinding, found: Findings) -> Iterator[Check]:
    """A heal before the give-up: delivery at the next backed-off copy, and nobody gives up."""
    assert found.healed is not None
    after = [c.segment.time_s for c in end.traffic.copies if c.segment.time_s > found.healed.began_at]
    recovered, latest = end.traffic.recovered_at, _next_copy_until(end, found.healed.began_at)
    ok = bool(after) and recovered is not None and recovered - after[0] < DELAYED_ACK_S and end.fate.gone_at is None
    ok = ok and (latest is None or after[0] <= latest)
    seen = "never" if recovered is None else f"{recovered - found.healed.done_at:.3f} s after the heal"
    copy = "no copy came" if not after else f"first copy {after[0] - found.healed.done_at:.3f} s after it"
    yield _predicted(end, "recovery", ok, f"delivered {seen}; {copy}")


def _next_copy_until(end: EndFinding, since: float) -> float | None:
    """By when the first copy after an instant must have left, CLOCK_MONOTONIC; None beyond the forecast."""
    planned, copies = end.branch.copy_times, end.traffic.copies
    number = sum(1 for c in copies if c.segment.time_s <= since)
    if planned and planned[0].kind is CopyKind.TAIL_LOSS_PROBE and not (copies and copies[0].trigger is Trigger.PROBE):
        number += 1  # The probe carried new data and was no copy.
    if end.anchor is None or number >= len(planned):
        return None
    return end.anchor + planned[number].window_s[1]


def _lived_on(end: EndFinding, found: Findings) -> Iterator[Check]:
    """An idle end whose path came back in time has nothing to lose and nothing to learn."""
    gone_at = end.fate.gone_at
    seen = "it lived on" if gone_at is None else f"the kernel gave up at {gone_at - found.cut.done_at:.3f} s"
    yield _predicted(end, "alive", gone_at is None, f"healed before anything was due; {seen}")


def _when(end: EndFinding, found: Findings) -> str:
    due, cut_at = end.window, found.cut.done_at
    return "never" if due is None else f"{due[0] - cut_at:.3f} to {due[1] - cut_at:.3f} s"


def _count(high: int | None) -> str:
    return "any number" if high is None else str(high)
