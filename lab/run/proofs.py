"""The proofs that a run owes before its prediction counts: one that fails makes it INVALID, whatever the clock said."""

from collections.abc import Iterator, Sequence

from lab.core.flow import Direction
from lab.core.verdict import DATED_WITHIN_S, Check
from lab.run.findings import EndFinding, Findings

CALM_BEFORE_CUT_S = 1.0
"""For how long before the cut the captures must be complete: nothing of what was lost may have begun unseen."""

CLOCK_STEP_S = 0.010
"""How far wall and monotonic time may move against each other in a run: less than the 20 ms of a dated death, more
than slewing does in a minute (500 ppm)."""

WITNESS_S = 0.030
"""How far the sampled death and the program's own error may lie apart: the dating, and a process's wake-up."""

UNSEEN_S = 1.0
"""How long before the end of the watch the last look at a living socket may be: four of the sampler's longest waits."""

BYSTANDER_GAP_S = 2.0
"""Ten of its intervals: longer silence means that something else than the fault disturbed the path."""

_MOST_NAMED = 4
"""Interventions; the first ones are the cause of the others."""


def proofs(found: Findings) -> list[Check]:
    """Every proof, passed or failed."""
    checks = [
        _capture_complete(found),
        *_open_at_cut(found),
        *_translated(found),
        *(_rules_bit(found, passage.direction) for passage in found.passages),
        *(_rules_agree(found, passage.direction) for passage in found.passages),
        _nothing_crossed(found),
        _nothing_else_lost(found),
        _no_strangers(found),
        _no_icmp(found),
        _bystander(found),
        _clocks(found),
        *_left_alone(found),
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


def _open_at_cut(found: Findings) -> Iterator[Check]:
    count = found.ended_early
    if count is not None:
        yield Check("open-at-cut", count == 0, f"{count} FIN or RST of the flow passed before it was cut")


def _translated(found: Findings) -> Iterator[Check]:
    """With an uplink, both captures have to show one flow under the two names that the kernel gives it."""
    far = found.far
    if far is None:
        return
    forward, back = far.passed[Direction.FORWARD], far.passed[Direction.RETURN]
    name = "unknown to the router" if far.translated is None else f"{far.translated} outside"
    steady = "" if far.steady else ", not the same before the cut and at the end"
    yield Check(
        "translated",
        far.steady and forward > 0 and back > 0,
        f"the flow is {name}{steady}; before the cut {forward} of its segments left and {back} came back under it",
    )


def _rules_bit(found: Findings, direction: Direction) -> Check:
    count = found.matched.of(direction)
    passage = next(p for p in found.passages if p.direction is direction)
    quiet = not (passage.missing or passage.crossed)
    if found.far is not None and direction is Direction.RETURN and quiet and found.matched.forward:
        # No nudge is sent on behalf of an end that is not the lab's: rule-equals-capture holds the count to nothing,
        # and the other direction shows that there is a hole.
        return Check("rule-matched-return", True, "nothing came from outside while it was dark: nothing to drop")
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


def _nothing_else_lost(found: Findings) -> Check:
    """By a way that was left open, or that is open again, everything passes."""
    open_way = sum(len(passage.missing) for passage in found.open_ways)
    healed_at = float("inf") if found.healed is None else found.healed.done_at
    after = sum(1 for passage in found.passages for segment in passage.missing if segment.time_s > healed_at)
    return Check(
        "nothing-else-lost",
        open_way == after == 0,
        f"{open_way} segments went missing on a way that was not cut, {after} after the heal",
    )


def _no_strangers(found: Findings) -> Check:
    strangers = sum(len(passage.strangers) for passage in (*found.passages, *found.open_ways))
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


def _left_alone(found: Findings) -> Iterator[Check]:
    """A pause, a stop, another network: to the flow they look like the hole."""
    done = found.interventions
    if done is not None:
        yield Check("left-alone", not done, named(done) or "nobody else touched its containers and networks")


def named(done: Sequence[str]) -> str:
    """Interventions in one phrase."""
    more = len(done) - _MOST_NAMED
    return "; ".join(done[:_MOST_NAMED]) + (f"; {more} more" if more > 0 else "")


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
    yield from _orphan_dated(end)
    if end.fate.gone_at is None:
        return
    within = end.fate.within_s
    yield Check(
        f"{end.name}-death-dated",
        within <= DATED_WITHIN_S or not _straddles(end),
        f"known to {within * 1000:.0f} ms either way ({DATED_WITHIN_S * 1000:.0f} where the verdict hangs on it)",
    )
    if end.program_error_at is not None:
        apart_s = abs(end.program_error_at - end.fate.gone_at)
        yield Check(
            f"{end.name}-witnesses-agree",
            apart_s <= WITNESS_S + within,
            f"the program's error and the socket's end lie {apart_s * 1000:.0f} ms apart",
        )


def _orphan_dated(end: EndFinding) -> Iterator[Check]:
    """A verdict on an orphan's end hangs on its date as that of any other death does."""
    orphan = end.orphan
    if orphan is None or orphan.gone_at is None or orphan.window is None:
        return
    earliest, latest = orphan.gone_at - orphan.within_s, orphan.gone_at + orphan.within_s
    yield Check(
        f"{end.name}-orphan-death-dated",
        orphan.within_s <= DATED_WITHIN_S or not any(earliest < edge < latest for edge in orphan.window),
        f"known to {orphan.within_s * 1000:.0f} ms either way "
        f"({DATED_WITHIN_S * 1000:.0f} where the verdict hangs on it)",
    )


def _watched(end: EndFinding, found: Findings) -> Check:
    """Nobody can say that a socket lived on who did not look."""
    if end.seen_until is None:
        return Check(f"{end.name}-watched", False, "its socket was never seen")
    gap_s = found.watched_until - end.seen_until
    closed = end.fate.closed_at is not None and (end.orphan is None or end.orphan.gone_at is not None)
    ended = end.fate.gone_at is not None or closed
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
