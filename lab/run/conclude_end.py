"""One end's part of the record: what was predicted of it, and what was seen."""

from dataclasses import replace
from typing import Any

from lab.core.prediction import GiveUp
from lab.report import record as r
from lab.run.findings import EndFinding, Findings
from lab.run.orphan import Orphan
from lab.run.traffic import Traffic


def prediction_of(end: EndFinding, cut_at: float) -> r.EndPrediction:
    """What was said of an end, its times counted from the cut."""
    origin = 0.0 if end.anchor is None else end.anchor - cut_at
    sending = branch_of(end.forecast.sending, origin if end.sends else 0.0)
    heard = end.traffic.heard_at or end.forecast.heard_at
    idle = branch_of(end.forecast.idle, 0.0 if heard is None else heard - cut_at)
    applied = r.Activity.SENDING if end.sends else r.Activity.IDLE
    lost, closing, orphan = end.traffic.lost_at, end.forecast.closing, end.orphan
    # The close's own FIN may be what was lost first.
    from_lost = 0.0 if lost is None else lost - cut_at
    return r.EndPrediction(
        applied=applied,
        sending=sending,
        idle=idle,
        closing=None if closing is None else branch_of(closing, from_lost),
        orphan=None if orphan is None or orphan.predicted is None else branch_of(_once_closed(orphan), from_lost),
    )


def _once_closed(orphan: Orphan) -> GiveUp:
    """What was predicted of it, with the copies from the close on alone."""
    assert orphan.predicted is not None
    copies, (_, most) = orphan.predicted.copy_times, orphan.predicted.copies
    return replace(orphan.predicted, copy_times=() if not most else copies[-most:])


def branch_of(give_up: GiveUp, origin_s: float) -> r.Branch:
    """A branch of the model's, its times counted from an origin, seconds from the cut."""
    low, high = give_up.copies
    branch = r.Branch(
        cause=r.Cause(give_up.cause.value),
        window_s=give_up.window_s,
        copies=None if high is None else (low, high),
        bound_s=give_up.bound_s,
        copy_windows_s=tuple(copy.window_s for copy in give_up.copy_times),
    )
    return branch.counted_from(origin_s)


def observation_of(end: EndFinding, found: Findings) -> r.EndObservation:
    """What an end's kernel and program did."""
    cut_at = found.cut.done_at

    def from_cut(at: float | None) -> float | None:
        return None if at is None else at - cut_at

    cause = end.fate.cause
    return r.EndObservation(
        **_sent(end.traffic, cut_at),
        gave_up_s=from_cut(end.fate.gone_at),
        gave_up_within_s=end.fate.within_s if end.fate.gone_at is not None else None,
        cause=r.Cause(cause) if cause is not None else r.Cause.NONE,
        errno=end.noticing.errno,
        noticed_s=from_cut(end.noticing.at),
        noticed_by=None if end.noticing.by is None else r.NoticedBy(end.noticing.by),
        closed_s=from_cut(end.let_go_at),
        held_s=None if end.let_go_at is None else from_cut(end.fate.held_at),
        orphan=_orphan(end.orphan, cut_at),
        never_told=_never_told(end, found),
    )


def _orphan(orphan: Orphan | None, cut_at: float) -> r.OrphanObservation | None:
    if orphan is None:
        return None
    gone = orphan.gone_at is not None
    return r.OrphanObservation(
        copies=len(orphan.copies),
        gone_s=None if orphan.gone_at is None else orphan.gone_at - cut_at,
        gone_within_s=orphan.within_s if gone else None,
        cause=r.Cause(orphan.cause) if orphan.cause is not None else r.Cause.NONE,
    )


def observed_far(found: Findings) -> r.EndObservation:
    """An outside server: what it sent, and nothing of what its kernel and its program made of that."""
    assert found.far is not None
    return r.EndObservation(**_sent(found.far.traffic, found.cut.done_at))


def _sent(traffic: Traffic, cut_at: float) -> dict[str, Any]:
    """What the wire shows of an end, the fields of the record."""

    def from_cut(at: float | None) -> float | None:
        return None if at is None else at - cut_at

    times = tuple(c.segment.time_s - cut_at for c in traffic.copies)
    return {
        "first_lost_s": from_cut(traffic.lost_at),
        "copies": len(times),
        "copy_times_s": times,
        "copy_classes": tuple(c.segment_class.value for c in traffic.copies),
        "last_copy_s": times[-1] if times else None,
        "recovered_s": from_cut(traffic.recovered_at),
    }


def _never_told(end: EndFinding, found: Findings) -> bool:
    """Whether the end still believed in its connection when the watch ended, although the path was dark for it."""
    if end.fate.gone_at is not None or end.fate.closed_at is not None or end.noticing.at is not None:
        return False
    if end.traffic.told_at is not None:
        return False
    recovered = end.traffic.recovered_at is not None or not end.sends
    return found.healed is None or not recovered
