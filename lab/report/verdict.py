"""What a run comes to, in a sentence."""

from lab.report.record import Branch, EndObservation, EndPrediction, Outcome, Record
from lab.report.units import brief, closing, seconds, window


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
    """Whose program closed the flow, so that its kernel was not put to the last test, and what it did instead."""
    ends = (
        ("client", record.prediction.client, record.observation.client),
        ("server", record.prediction.server, record.observation.server),
    )
    return [
        f"the {end}'s program closed the flow {closing(seen.held_s, seen.closed_s)}{_before(said.branch)}"
        f"{_orphan(said, seen, record.horizon_s)}"
        for end, said, seen in ends
        if end in record.ends_closed and said.branch is not None and seen.closed_s is not None
    ]


def _orphan(said: EndPrediction, seen: EndObservation, horizon_s: float | None) -> str:
    """What was seen of the socket after the close."""
    orphan = seen.orphan
    if orphan is None:
        return ""
    due = None if said.orphan is None else window(said.orphan.window_s)
    if orphan.gone_s is not None:
        predicted = "of which nothing was predicted" if due is None else f"as predicted ({due})"
        return f", and its orphan was gone at {seconds(orphan.gone_s)}, {predicted}"
    predicted = (
        "its end was neither predicted nor seen" if due is None else f"its end, predicted for {due}, was not seen"
    )
    watched = "the end of the watch" if horizon_s is None else brief(horizon_s)
    return f", and its orphan was still there at {watched}; {predicted}"


def _before(branch: Branch) -> str:
    if branch.window_s is None:
        return "; its kernel would never have given up"
    return f", before its kernel would have given up ({window(branch.window_s)})"
