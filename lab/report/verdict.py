"""What a run comes to, in a sentence."""

from lab.report.record import Branch, Outcome, Record
from lab.report.units import brief, seconds, window


def is_limited(record: Record) -> bool:
    """Whether it confirms up to the horizon only: an end's fate was open when the watch ended, and not by a close."""
    return record.outcome is Outcome.CONFIRMED and bool(_open_ends(record))


def verdict(record: Record) -> str:
    """Why the outcome is what it is."""
    if record.outcome is not Outcome.CONFIRMED:
        why = record.reason or "the record does not say why"
        return f"{why}; the machine was too busy for this run: run it again" if record.disturbed else why
    closings = _closings(record)
    if is_limited(record):
        return "; ".join([*(closings or ["as predicted so far"]), _still_open(record)])
    if not closings:
        met = "each end met its fate" if record.uplink is None else "the client met its fate"
        return record.reason or f"{met} as predicted"
    seen = ("client", "server") if record.uplink is None else ("client",)
    return "; ".join(
        [*closings, *(f"the {end} met its fate as predicted" for end in seen if end not in record.ends_closed)]
    )


def _open_ends(record: Record) -> list[str]:
    return [end for end in record.ends_unresolved if end not in record.ends_closed]


def _still_open(record: Record) -> str:
    horizon = "an unknown time" if record.horizon_s is None else brief(record.horizon_s)
    return f"after {horizon} the fate of the {' and the '.join(_open_ends(record))} was still open"


def _closings(record: Record) -> list[str]:
    """Whose program closed the flow, so that its kernel was not put to the last test."""
    ends = (
        ("client", record.prediction.client.branch, record.observation.client.closed_s),
        ("server", record.prediction.server.branch, record.observation.server.closed_s),
    )
    return [
        f"the {end}'s program closed the flow at {seconds(closed_s)}{_before(branch)}"
        for end, branch, closed_s in ends
        if end in record.ends_closed and branch is not None and closed_s is not None
    ]


def _before(branch: Branch) -> str:
    if branch.window_s is None:
        return "; its kernel would never have given up"
    return f", before its kernel would have given up ({window(branch.window_s)})"
