"""Rows of the table, for people and for scripts: ours beside the study's."""

from collections.abc import Iterator, Sequence
from typing import Any

from lab.study.judgement import Finding, Row
from lab.study.scenario import Count, Over, Quantity, Range
from lab.study.statistics import Interval, median, median_interval, spread, wilson

MANY = 30
"""From so many sessions on, intervals say more than extremes."""

WORDS = {
    Quantity.REFUSED: "refused",
    Quantity.ACCEPTED: "accepted",
    Quantity.REFUSAL_S: "refused after",
    Quantity.ACCEPTANCE_S: "accepted after",
    Quantity.RESUMED_S: "resumed",
    Quantity.DETECTED_S: "detected",
    Quantity.CONSISTENT: "consistent",
    Quantity.BOOKINGS: "bookings",
    Quantity.REISSUED: "issued again",
    Quantity.REISSUED_AFTER_S: "issued again after",
    Quantity.WINDOW_S: "window",
    Quantity.FALLBACK_S: "new session",
    Quantity.NEW_SETUP_S: "its setup",
    Quantity.SPEAKS_AFTER_S: "speaks after the restore",
    Quantity.FIRST_AUDIO_S: "first audio",
    Quantity.CLOSE_ECHO_S: "close echoed",
    Quantity.RESULT_AGE_S: "result of a call issued before",
    Quantity.ANNOUNCED_S: "announced",
    Quantity.BEHIND_S: "behind the commit",
    Quantity.STILL_BOOKING_S: "still booking after the commit",
    Quantity.SILENT_UNTIL_S: "server silent until",
    Quantity.COPIES: "copies",
    Quantity.LAST_COPY_S: "last copy",
    Quantity.SETUP_CLOSED: "setup closed with",
    Quantity.ANSWERED: "answered",
    Quantity.UPDATED: "update notes",
    Quantity.HEARD_AGAIN: "heard again",
    Quantity.GAVE_UP: "gave up",
    Quantity.GAVE_UP_AT_LIMIT: "at the limit",
    Quantity.DEAD_CODE: "the path brought",
}
"""How a quantity is called beside its figure."""

INSTANTS = {Quantity.REFUSED_AT_S, Quantity.ACCEPTED_AT_S}
"""For the figure: their quantiles say nothing but when the script tried."""

CODES = {Quantity.SETUP_CLOSED, Quantity.DEAD_CODE}
"""Counts that are names of something: a sum of them means nothing."""


def ours(row: Row) -> str:
    """What came, quantity by quantity, in the order in which it was expected."""
    return "; ".join(_figure(finding, row) for finding in row.findings if finding.values) or "nothing"


def verdict(row: Row) -> str:
    """In or out of the range, or as predicted or not."""
    if not row.valid:
        return "INVALID"
    if row.scenario.published:
        return "in range" if row.in_range else "outside, as explained" if row.passed else "OUTSIDE"
    return "as predicted" if row.passed else "NOT AS PREDICTED"


def as_json(row: Row) -> dict[str, Any]:
    """The row for scripts; ``in_range`` is None where the study gives nothing."""
    return {
        "scenario": row.scenario.id,
        "title": row.scenario.title,
        "n": len(row.valid),
        "ours": ours(row),
        "study": row.scenario.study or None,
        "in_range": row.in_range,
        "passed": row.passed,
        "prediction": row.scenario.prediction or None,
        "reasons": list(row.reasons),
        "refused": row.total(Quantity.REFUSED),
        "attempts": row.total(Quantity.REFUSED) + row.total(Quantity.ACCEPTED),
        "consistent": row.total(Quantity.CONSISTENT),
        "answers": row.total(Quantity.ANSWERED),
        "double_bookings": row.double_bookings,
        "wrong_on_purpose": bool(row.scenario.wrong_on_purpose),
        "invalid": len(row.sessions) - len(row.valid),
        "run_again": sum(len(each.again) for each in row.sessions),
        "real_waits": row.real,
        "quantities": [_quantity(finding) for finding in row.findings],
        "statistics": statistics(row),
    }


def statistics(row: Row) -> list[dict[str, Any]]:
    """Quantiles of every time, and Wilson's interval of every proportion, whatever was expected."""
    return [*_proportions(row), *_spreads(row)]


def _proportions(row: Row) -> Iterator[dict[str, Any]]:
    n = len(row.valid)
    attempts = row.total(Quantity.REFUSED) + row.total(Quantity.ACCEPTED)
    answers = row.total(Quantity.ANSWERED)
    one = sum(1 for each in row.valid if each.total(Quantity.BOOKINGS) == 1)
    again = sum(1 for each in row.valid if each.total(Quantity.REISSUED) > 0)
    shares = (
        ("attempts refused", row.total(Quantity.REFUSED), attempts),
        ("answers consistent", row.total(Quantity.CONSISTENT), answers),
        ("sessions with exactly one booking", one, n),
        ("sessions with a call issued again", again, n),
    )
    for name, k, of in shares:
        if of:
            low, high = _ends(wilson(k, of))
            yield {"what": name, "k": k, "n": of, "low": low, "high": high}


def _spreads(row: Row) -> Iterator[dict[str, Any]]:
    for quantity in Quantity:
        if not quantity.timed or quantity in INSTANTS:
            continue
        values = [value for each in row.valid for value in each.values.get(quantity, ())]
        found = spread(values)
        if found is not None:
            between = median_interval(values)
            shown = {"n": found.n, "low": found.low, "q05": found.q05, "median": found.median, "q95": found.q95}
            yield {
                "what": quantity.value,
                **{name: round(value, 3) for name, value in shown.items()},
                "high": round(found.high, 3),
                "median_within": None if between is None else _ends(between),
            }


def _ends(interval: Interval) -> list[float]:
    return [round(interval.low, 4), round(interval.high, 4)]


def _quantity(finding: Finding) -> dict[str, Any]:
    expected = finding.expected
    shown: dict[str, Any] = {
        "quantity": expected.quantity.name.lower(),
        "what": expected.quantity.value,
        "ours": [round(value, 3) for value in finding.values],
        "standing": finding.standing.value,
        "origin": expected.origin.value,
        "source": expected.source,
        "reason": finding.reason or None,
    }
    if isinstance(expected, Count):
        return shown | {"per_session": list(expected.per_session)}
    return shown | {
        "low": expected.low,
        "high": expected.high,
        "over": expected.over.value,
        "slack": expected.slack,
        "slack_above": expected.slack if expected.slack_above is None else expected.slack_above,
    }


def _figure(finding: Finding, row: Row) -> str:
    expected, values = finding.expected, finding.values
    word = WORDS[expected.quantity]
    if expected.quantity in CODES:
        return f"{word} {', '.join(f'{value:g}' for value in dict.fromkeys(values))}"
    if isinstance(expected, Count):
        return _counted(expected, values, word, row)
    return f"{word} {_ranged(expected, values)}"


def _counted(expected: Count, values: Sequence[float], word: str, row: Row) -> str:
    total = int(sum(values))
    of = {
        Quantity.REFUSED: row.total(Quantity.REFUSED) + row.total(Quantity.ACCEPTED),
        Quantity.CONSISTENT: row.total(Quantity.ANSWERED),
    }.get(expected.quantity)
    if of is None:
        return f"{word} {total}"
    if of < MANY or expected.quantity is Quantity.REFUSED:
        return f"{word} {total} of {of}"
    within = wilson(total, of)
    return f"{word} {total} of {of} (95 %: {within.low:.1%} to {within.high:.1%})"


def _ranged(expected: Range, values: Sequence[float]) -> str:
    unit = " s" if expected.quantity.timed else ""
    digits = 3 if expected.quantity.timed and max(values) < 100 else 1 if expected.quantity.timed else 0
    found = spread(values)
    assert found is not None, "asked only where there are values"
    between = median_interval(values)
    if len(values) >= MANY and between is not None:
        figure = f"median {found.median:.{digits}f} ({between.low:.{digits}f} to {between.high:.{digits}f})"
        return f"{figure}, 5 % to 95 % {found.q05:.{digits}f} to {found.q95:.{digits}f}{unit}"
    if found.low == found.high:
        return f"{found.low:.{digits}f}{unit}"
    middle = f", median {median(values):.{digits}f}" if expected.over is Over.MEDIAN else ""
    return f"{found.low:.{digits}f} to {found.high:.{digits}f}{middle}{unit}"
