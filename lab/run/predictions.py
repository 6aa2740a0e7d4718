"""The prediction of each end held against what came."""

from collections.abc import Iterator

from lab.core.aftermath import Aftermath, judge
from lab.core.aftermath_rules import Observed
from lab.core.prediction import Cause, CopyKind
from lab.core.segment_class import Trigger
from lab.core.verdict import DATED_WITHIN_S, Check, Kind
from lab.run.findings import EndFinding, Findings
from lab.run.orphan import orphans_aftermath, split

DELAYED_ACK_S = 0.06
"""How long after its arrival a segment may be acknowledged: TCP_DELACK_MIN is 40 ms, and a busy machine."""

CLOSE_DATED_S = 1.0
"""How late a program's close may be dated that only samples tell of: four of the sampler's longest waits."""


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
        yield from _copies_until_closed(end, found, end.let_go_at)
        yield from _orphaned(end, found)
    elif gone_at is not None and _reset_by_the_open_way(end, found):
        at_s = gone_at - found.cut.done_at
        in_time = due is None or gone_at <= due[1] + DATED_WITHIN_S
        what = "before anything was due" if in_time else f"although it was due {_when(end, found)}"
        yield _predicted(end, "alive", in_time, f"the other end's RST came by the open way at {at_s:.3f} s, {what}")
    elif gone_at is None:
        yield from _lived(end, found)
    elif due is None:
        at_s = gone_at - found.cut.done_at
        yield _predicted(end, "alive", False, f"nothing was due, but the kernel gave up at {at_s:.3f} s")
    else:
        yield from _died(end, found, gone_at, due)


def _reset_by_the_open_way(end: EndFinding, found: Findings) -> bool:
    """Whether the other end's RST ended it, on a path that was cut in the other direction only."""
    towards = end.direction.opposite
    return end.fate.cause == Cause.RESET.value and all(passage.direction is not towards for passage in found.passages)


def _predicted(end: EndFinding, what: str, ok: bool, detail: str) -> Check:
    return Check(f"{end.name}-{what}", ok, detail, Kind.PREDICTION)


def _healed_in_time(end: EndFinding, found: Findings) -> bool:
    """Whether the path came back before the kernel had to give up; inside the window either may come first."""
    due = end.window
    if found.healed is None or (end.let_go_at is not None and end.let_go_at < found.healed.began_at):
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


def _copies_until_closed(end: EndFinding, found: Findings, closed_at: float) -> Iterator[Check]:
    """What had to leave before the close: those copies whose windows were over by then, and none that was not due.

    A heal after the close moves none of them.
    """
    if end.anchor is None or (found.healed is not None and found.healed.began_at <= closed_at):
        return
    held_at = closed_at if end.fate.held_at is None else end.fate.held_at
    planned = [(c, end.anchor + c.window_s[0], end.anchor + c.window_s[1]) for c in end.branch.copy_times]
    over = [c for c, _, latest in planned if latest + DATED_WITHIN_S < held_at]
    low = sum(1 for copy in over if copy.kind is not CopyKind.TAIL_LOSS_PROBE)
    high = sum(1 for _, earliest, _ in planned if earliest - DATED_WITHIN_S <= closed_at)
    early, _ = split(end.traffic.copies, closed_at)
    copies = len(early)
    most = None if end.branch.copies[1] is None else high
    enough = low <= copies and (most is None or copies <= most)
    yield _predicted(
        end, "copies", enough, f"{copies} copies until it was closed, {low} to {_count(most)} predicted by then"
    )


def _orphaned(end: EndFinding, found: Findings) -> Iterator[Check]:
    """After a close the kernel goes on with the socket by a rule of its own."""
    orphan, cut_at = end.orphan, found.cut.done_at
    if orphan is None or orphan.predicted is None or orphan.window is None:
        return
    due = f"predicted {orphan.window[0] - cut_at:.3f} to {orphan.window[1] - cut_at:.3f} s"
    copies, (low, high) = len(orphan.copies), orphan.predicted.copies
    if orphan.gone_at is None:
        overdue = found.watched_until > orphan.window[1] + DATED_WITHIN_S
        yield _predicted(end, "orphan", not overdue, f"its orphan was there at {found.horizon_s:.2f} s, {due}")
        yield _predicted(
            end, "orphan-copies", high is None or copies <= high, f"{copies}, at most {_count(high)} predicted"
        )
        if not overdue:
            detail = f"its orphan's end was not watched: still there at {found.horizon_s:.2f} s, {due}"
            yield Check(f"{end.name}-orphan-horizon", False, detail, Kind.NOTE)
        return
    in_window = orphan.window[0] - orphan.within_s <= orphan.gone_at <= orphan.window[1] + orphan.within_s
    yield _predicted(end, "orphan", in_window, f"its orphan was gone at {orphan.gone_at - cut_at:.3f} s, {due}")
    cause = orphan.predicted.cause.value
    yield _predicted(end, "orphan-cause", orphan.cause == cause, f"{orphan.cause or 'unknown'}, predicted {cause}")
    enough = low <= copies and (high is None or copies <= high)
    yield _predicted(end, "orphan-copies", enough, f"{copies} after the close, {low} to {_count(high)} predicted")
    if end.forecast.closing_situation is not None:
        after = orphans_aftermath(orphan, end.forecast, end.traffic, DATED_WITHIN_S)
        yield _predicted(end, "orphan-rule", after.holds, after.sentence)


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
    """A heal before the give-up: the next backed-off copy is answered, and the kernel does not give up.

    With an acknowledgment where the other end still stands, with a RST where its kernel or program had let go of it.
    """
    assert found.healed is not None
    after = [c.segment.time_s for c in end.traffic.copies if c.segment.time_s > found.healed.began_at]
    latest, gone_at = _next_copy_until(end, found.healed.began_at), end.fate.gone_at
    reset, answered = _reset_by_its_peer(end, found), end.traffic.recovered_at
    if reset and gone_at is not None and (answered is None or gone_at <= answered):
        # A death by a RST is not announced and so dated loosely: the earliest instant that it can have been.
        answered = gone_at - end.fate.within_s
    ok = bool(after) and answered is not None and answered - after[0] < DELAYED_ACK_S and (reset or gone_at is None)
    ok = ok and (latest is None or after[0] <= latest)
    if not after and end.let_go_at is not None and (latest is None or end.let_go_at <= latest):
        at_s = end.let_go_at - found.healed.done_at
        yield _predicted(
            end, "recovery", True, f"its program closed it {at_s:.3f} s after the heal, before its next copy"
        )
        return
    how = "reset" if reset and answered != end.traffic.recovered_at else "delivered"
    seen = "never" if answered is None else f"{answered - found.healed.done_at:.3f} s after the heal"
    copy = "no copy came" if not after else f"first copy {after[0] - found.healed.done_at:.3f} s after it"
    yield _predicted(end, "recovery", ok, f"{how} {seen}; {copy}")


def _reset_by_its_peer(end: EndFinding, found: Findings) -> bool:
    """Whether, with the path back, it learnt by a RST that the other end's kernel or program had let go before."""
    gone_at = end.fate.gone_at
    if gone_at is None or end.fate.cause != Cause.RESET.value:
        return False
    return _ended_before(found.other(end), gone_at + end.fate.within_s + CLOSE_DATED_S)


def _ended_before(end: EndFinding | None, instant: float) -> bool:
    """Whether the end's kernel had given up, or its program had closed, by then; of one outside only a RST tells."""
    return end is None or any(at is not None and at < instant for at in (end.fate.gone_at, end.let_go_at))


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
    """An idle end whose path came back in time has nothing to lose, and nothing to learn but its peer's end."""
    gone_at, reset = end.fate.gone_at, _reset_by_its_peer(end, found)
    how = "its peer, which had let go, reset it" if reset else "the kernel gave up"
    seen = "it lived on" if gone_at is None else f"{how} at {gone_at - found.cut.done_at:.3f} s"
    yield _predicted(end, "alive", gone_at is None or reset, f"healed before anything was due; {seen}")


def _when(end: EndFinding, found: Findings) -> str:
    due, cut_at = end.window, found.cut.done_at
    return "never" if due is None else f"{due[0] - cut_at:.3f} to {due[1] - cut_at:.3f} s"


def _count(high: int | None) -> str:
    return "any number" if high is None else str(high)
