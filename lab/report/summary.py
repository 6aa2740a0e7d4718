"""What a reader wants to know of a run, in the order asked: the verdict, both ends, what failed, the rest.

``Summary`` holds words only; ``text`` and ``markdown`` lay them out.
"""

from dataclasses import dataclass

from lab.report.doubts import doubts
from lab.report.record import (
    Activity,
    Branch,
    Cause,
    Check,
    EndObservation,
    EndPrediction,
    NoticedBy,
    Outcome,
    Record,
)
from lab.report.units import NEVER, brief, count, long, seconds, window
from lab.report.verdict import is_limited, verdict

UNKNOWN = "-"
_OF_A_FLOW_LEFT_OPEN = ("gave up", "cause", "copies")
_OF_AN_ORPHAN = ("orphan gone", "its cause", "its copies")
_NOT_PREDICTED = "not predicted"
OUTSIDE = "outside"
"""Not observed, because it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a quantity at both ends, predicted beside measured."""

    quantity: str
    client: tuple[str, str]
    """Predicted, measured."""

    server: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in words."""

    outcome: Outcome
    headline: str
    """The outcome, and what limits it."""

    verdict: str
    """Why, in a sentence."""

    facts: tuple[tuple[str, str], ...]
    """What was done, as name and value."""

    rows: tuple[Row, ...]
    """Empty where nothing is known of either end."""

    checks: tuple[Check, ...]
    doubts: tuple[str, ...]
    """What speaks against the outcome (``lab.report.doubts``)."""

    closing: tuple[tuple[str, str], ...]
    """What else was seen, as name and value."""

    artefacts: tuple[str, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.ok)


def summarise(record: Record) -> Summary:
    """The summary of a record."""
    return Summary(
        outcome=record.outcome,
        headline=record.outcome.value.upper() + (" up to the horizon only" if is_limited(record) else ""),
        verdict=verdict(record),
        facts=_facts(record),
        rows=_rows(record),
        checks=record.checks,
        doubts=doubts(record),
        closing=_closing(record),
        artefacts=record.artefacts,
    )


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    fault, matched = record.fault, record.fault.matched
    if fault.cut_at is None:
        cut = "never cut"
    else:
        direction = fault.direction.value if fault.direction else "?"
        scope = fault.scope.value if fault.scope else "?"
        healed = (
            "never healed"
            if fault.healed_s is None
            else f"healed after {seconds(fault.healed_s)} (predicted is without it)"
        )
        cut = f"{direction}, {scope} scope, {healed}"
    dropped = f"{_or_unknown(matched.forward)} forward, {_or_unknown(matched.return_)} return"
    watched = UNKNOWN if record.horizon_s is None else f"{brief(record.horizon_s)} after the cut"
    return (
        ("flow", f"{record.flow.client or '?'} > {record.flow.server or '?'}"),
        *_outside(record),
        ("cut", cut),
        ("dropped", dropped),
        ("watched", watched),
        ("backend", _backend(record)),
    )


def _outside(record: Record) -> tuple[tuple[str, str], ...]:
    """What there is to say of a server that is not in the testbed."""
    uplink = record.uplink
    if uplink is None:
        return ()
    name = "" if uplink.host == uplink.address else f"{uplink.host}, "
    seen_as = "" if uplink.translated is None else f"; it knows the client as {uplink.translated}"
    return (("server", f"{name}outside: its kernel and program were not observed{seen_as}"),)


def _backend(record: Record) -> str:
    parts = [record.backend]
    if record.settings.profile:
        parts.append(f"profile {record.settings.profile}")
    if record.versions.kernel:
        parts.append(f"Linux {record.versions.kernel}")
    if record.settings.hz:
        parts.append(f"HZ {record.settings.hz}")
    return ", ".join(parts)


def _rows(record: Record) -> tuple[Row, ...]:
    client = _end(record.prediction.client, record.observation.client, record.horizon_s)
    server = _end(record.prediction.server, record.observation.server, record.horizon_s)
    client, server = (
        _unfinished(rows, said, seen, record.horizon_s) if end in record.ends_closed else rows
        for end, rows, said, seen in (
            ("client", client, record.prediction.client, record.observation.client),
            ("server", server, record.prediction.server, record.observation.server),
        )
    )
    if record.uplink is not None and record.fault.cut_at is not None:
        server = _far_end(record.observation.server)
    if {*client.values(), *server.values()} <= {(UNKNOWN, UNKNOWN), ("", UNKNOWN)}:
        return ()
    return tuple(
        Row(quantity, client.get(quantity, ("", "")), server.get(quantity, ("", "")))
        for quantity in max(client, server, key=len)
    )


def _end(prediction: EndPrediction, seen: EndObservation, horizon_s: float | None) -> dict[str, tuple[str, str]]:
    branch = prediction.branch
    return {
        "traffic": (UNKNOWN if prediction.applied is None else prediction.applied.value, _sent(seen)),
        "gave up": (UNKNOWN if branch is None else window(branch.window_s), _gave_up(seen, horizon_s)),
        "cause": (UNKNOWN if branch is None else branch.cause.value, seen.cause.value if seen.cause else UNKNOWN),
        "copies": (UNKNOWN if branch is None else count(branch.copies), _or_unknown(seen.copies)),
        "error": ("", seen.errno or UNKNOWN),
        "noticed": ("", _noticed(seen, horizon_s)),
    }


def _unfinished(
    rows: dict[str, tuple[str, str]], prediction: EndPrediction, seen: EndObservation, horizon_s: float | None
) -> dict[str, tuple[str, str]]:
    """Of an end that its program closed first: what was predicted is of a flow that is left open."""
    if_open = {
        quantity: f"({predicted})" for quantity, (predicted, _) in rows.items() if quantity in _OF_A_FLOW_LEFT_OPEN
    }
    measured = {"copies": f"{_or_unknown(seen.copies_until_closed)} until closed"}
    if rows["cause"][1] in (UNKNOWN, Cause.NONE.value):
        measured["cause"] = "closed by program"
    if prediction.applied is Activity.IDLE:
        measured["traffic"] = "idle until closed"
    ended = {name: (if_open.get(name, said), measured.get(name, value)) for name, (said, value) in rows.items()}
    return ended | _orphan(prediction.orphan, seen, horizon_s)


def _orphan(predicted: Branch | None, seen: EndObservation, horizon_s: float | None) -> dict[str, tuple[str, str]]:
    """What its kernel made of a socket that its program had closed."""
    orphan = seen.orphan
    if orphan is None:
        return {}
    there = "not watched" if horizon_s is None else f"not in {brief(horizon_s)}"
    measured = (
        there if orphan.gone_s is None else seconds(orphan.gone_s),
        UNKNOWN if orphan.cause is None else orphan.cause.value,
        _or_unknown(orphan.copies),
    )
    said = (
        (_NOT_PREDICTED,) * len(measured)
        if predicted is None
        else (window(predicted.window_s), predicted.cause.value, count(predicted.copies))
    )
    return dict(zip(_OF_AN_ORPHAN, zip(said, measured, strict=True), strict=True))


def _far_end(seen: EndObservation) -> dict[str, tuple[str, str]]:
    """A server outside: the segments that it sent, and the last of them, which may not have been its last."""
    last = "" if seen.last_copy_s is None else f", last at {seconds(seen.last_copy_s)}"
    return {
        "traffic": (OUTSIDE, _sent(seen)),
        "gave up": (OUTSIDE, OUTSIDE),
        "cause": (OUTSIDE, OUTSIDE),
        "copies": (OUTSIDE, _or_unknown(seen.copies) + last),
        "error": ("", OUTSIDE),
        "noticed": ("", OUTSIDE),
    }


def _sent(seen: EndObservation) -> str:
    if seen.first_lost_s is not None:
        return f"lost at {seconds(seen.first_lost_s)}"
    return UNKNOWN if seen.copies is None else Activity.IDLE.value


def _gave_up(seen: EndObservation, horizon_s: float | None) -> str:
    if seen.gave_up_s is not None:
        return seconds(seen.gave_up_s)
    if seen.closed_s is not None:
        return f"closed {'at' if seen.held_s is None else 'by'} {seconds(seen.closed_s)}"
    if seen.recovered_s is not None:
        return f"acked at {seconds(seen.recovered_s)}"
    return UNKNOWN if horizon_s is None else f"not in {brief(horizon_s)}"


def _noticed(seen: EndObservation, horizon_s: float | None) -> str:
    if seen.noticed_s is not None and seen.by_itself:
        # It may have noticed, or have kept to its own schedule.
        done = "closed" if seen.noticed_by is NoticedBy.CLOSE else "exited"
        when = "" if seen.closed_s is not None else f" {seconds(seen.noticed_s)}"
        return f"unknown ({done}{when})"
    if seen.noticed_s is not None:
        return seconds(seen.noticed_s) + (f", {seen.noticed_by.value}" if seen.noticed_by else "")
    if not seen.never_told:
        return UNKNOWN
    return "never told" if horizon_s is None else f"not in {brief(horizon_s)}"


def _closing(record: Record) -> tuple[tuple[str, str], ...]:
    if record.fault.cut_at is None:
        return ()
    bystander, crossed = record.observation.bystander, record.observation.crossed
    alive = {True: "alive", False: "dead", None: "unknown"}[bystander.alive]
    came = (
        f"{_or_unknown(crossed.segments)} segments, {_or_unknown(crossed.rst)} RST, "
        f"{_or_unknown(crossed.fin)} FIN, {_or_unknown(crossed.icmp)} ICMP"
    )
    return (
        ("bystander", f"{alive}, {_or_unknown(bystander.lost)} lost"),
        ("crossed", came),
        *_real_world(record),
    )


def _real_world(record: Record) -> tuple[tuple[str, str], ...]:
    """The uncompressed figure beside the one predicted here."""
    real = record.real_world
    if real is None:
        return ()
    ends = (
        ("client", real.client, record.prediction.client.branch),
        ("server", real.server, record.prediction.server.branch),
    )
    said = [("real world", real.settings)] if real.settings else []
    said += [
        (f"{end}, real", f"{_long_window(branch)}; here {UNKNOWN if here is None else window(here.window_s)}")
        for end, branch, here in ends
        if branch is not None
    ]
    return tuple(said)


def _long_window(branch: Branch) -> str:
    if branch.window_s is None:
        return NEVER
    return f"{long(branch.window_s[0])} to {long(branch.window_s[1])} ({branch.cause.value})"


def _or_unknown(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
