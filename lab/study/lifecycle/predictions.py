"""What each row should show, for every variant, written down before it is measured; and what contradicts it.

A defect has to show in its own way: a row that is wrong in another one is a contradiction, and so is a row that is
missing, or there twice.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from lab.live.lifecycle import LAB, REPAIRED, VARIANTS, Variant
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.live.lifecycle.socket import USERS_CODE
from lab.study.lifecycle import closes, race, ways
from lab.study.lifecycle.closes import CloseRow
from lab.study.lifecycle.leaks import LeakRow, Repeated
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import RaceRow
from lab.study.lifecycle.rules import RulesRow

Row = TypeVar("Row")

CLOSING = frozenset({ways.CLOSED, ways.CLOSED_RELEASED, ways.EXIT})
"""Paths on which the published client closes as well, or its kernel does."""

EARLY_S, LATE_S = 5, 60
"""Session seconds by which a server's own close may differ from its limit: it counts from the last message, which is
older than the release; and in a lapse of 100 a machine that is 0.6 s late is a minute late."""

RANDOM_RIGHT = (2 / 3, 4 / 15, 4 / 15)
"""As published, shares of random races in which reader, record and later sends are right: those of all orders, each
weighted with its chance (``tests/study/lifecycle/test_race.py`` counts them)."""

DEVIATIONS = 5
"""Standard deviations of a share of so many draws by which it may differ: chance goes further once in two million."""

FEWEST_RACES = 1000
"""With which the widest window, 0.59 to 0.74, is that of the defect and of no other."""


def leaks_wrong(rows: Iterable[LeakRow]) -> Iterator[str]:
    """What contradicts the leak table's prediction."""
    wanted = [(variant, profile, path) for variant in VARIANTS for profile in ENDPOINTS for path in ways.PATHS]
    yield from _each("leaks", rows, lambda row: (row.variant, row.profile, row.path), wanted, leaks_as_predicted)


def leaks_as_predicted(row: LeakRow) -> bool:
    """Closed within 5 s; or, as published where nobody closes, as it was until the server's limit."""
    if VARIANTS[row.variant].closes_on_release or row.path in CLOSING:
        return row.ok
    limit_s = ENDPOINTS[row.profile].server.silence_close_s
    by_server = row.server_limit_s is not None and limit_s - EARLY_S < row.server_limit_s < limit_s + LATE_S
    reader_waits = (row.stream_finished, row.stream_failed) == (False, False)
    kept = (row.closed_in_s, row.service_kept, row.socket) == (None, True, "established") and reader_waits
    return not row.ok and kept and row.is_closed == ways.SAID[row.path] and by_server is (row.path not in ways.SILENT)


def repeated_wrong(rows: Iterable[Repeated], runs: int) -> Iterator[str]:
    """What contradicts: of so many for each variant that closes and each server, all are over."""
    wanted = [(variant.name, profile) for variant in (REPAIRED, LAB) for profile in ENDPOINTS]
    yield from _each(
        "repeated",
        rows,
        lambda row: (row.variant, row.profile),
        wanted,
        lambda row: repeated_as_predicted(row, runs),
    )


def repeated_as_predicted(row: Repeated, runs: int) -> bool:
    """All of so many are over."""
    return row.ok and row.closed == row.runs == runs


def limit_wrong(rows: Iterable[LimitRow]) -> Iterator[str]:
    """What contradicts the limit's prediction."""
    wanted = [(variant, profile) for variant in VARIANTS for profile in ENDPOINTS]
    yield from _each("limit", rows, lambda row: (row.variant, row.profile), wanted, limit_as_predicted)


def limit_as_predicted(row: LimitRow) -> bool:
    """As published the first one over the limit is refused, and all before it count; else none is, and one counts."""
    if row.limit != ENDPOINTS[row.profile].server.concurrent_limit:
        return False
    if VARIANTS[row.variant].closes_on_release:
        return row.refused_at is None and row.counted <= 1
    if row.limit is None or row.limit >= row.attempts:
        return row.refused_at is None and row.counted == row.attempts
    return row.refused_at == row.limit + 1 and row.counted == row.limit and row.told.startswith("UnexpectedClosure")


def race_wrong(rows: Iterable[RaceRow]) -> Iterator[str]:
    """What contradicts the race's prediction."""
    wanted = [(variant, order) for variant in VARIANTS for order in race.ORDERS]
    yield from _each("race", rows, lambda row: (row.variant, row.order), wanted, race_as_predicted)


def race_as_predicted(row: RaceRow) -> bool:
    """The first end stands in every order; as published in none, and the reader's depends on who finishes first."""
    if VARIANTS[row.variant].first_end_counts:
        return row.ok
    reader = row.reader_right / row.runs
    recorded, sends = row.recorded_first / row.runs, row.sends_right / row.runs
    if row.order == race.AT_RANDOM:  # in some, the wire names its end as the first one was
        shares = zip((reader, recorded, sends), RANDOM_RIGHT, strict=True)
        return row.runs >= FEWEST_RACES and all(_drawn(share, chance, row.runs) for share, chance in shares)
    if row.order in (race.CLOSE_FIRST, race.CLOSE_FIRST_SESSION):
        return (reader, recorded, sends) == (1, 0, 0)
    if row.order in (race.RECEIVE_FIRST, race.RECEIVE_FIRST_SESSION):
        return (reader, recorded, sends) == (0, 0, 0)
    return 0 < reader < 1 and (recorded, sends) == (0, 0)


def _drawn(share: float, chance: float, runs: int) -> bool:
    """Whether a share of so many draws is what its chance lets expect."""
    return abs(share - chance) <= DEVIATIONS * math.sqrt(chance * (1 - chance) / runs)


def closes_wrong(rows: Iterable[CloseRow]) -> Iterator[str]:
    """What contradicts the prediction of who is told what."""
    wanted = [
        (variant.name, one.phase, one.how, one.by.value, one.code or variant.close_code)
        for variant in VARIANTS.values()
        for one in closes.ends()
    ]
    yield from _each(
        "closes",
        rows,
        lambda row: (row.client, row.phase, row.how, row.by, row.code),
        wanted,
        closes_as_predicted,
    )


def closes_as_predicted(row: CloseRow) -> bool:
    """All are told what they should be."""
    return (row.connect, row.reader, row.sender, row.is_closed) == told(VARIANTS[row.client], row)


def told(variant: Variant, row: CloseRow) -> tuple[str, str, str, bool]:
    """What ``connect``, the reader and later sends should be told of an end, and ``is_closed``.

    Args:
        variant: Whose session.
        row: How it ends.
    """
    named = f"{row.by} {row.code}" if row.by == "server" else row.by
    if row.by == "us" and row.phase == closes.SETUP:
        return f"ClosedHere: {named}", "-", "-", True
    if variant.tells_who_closed:
        word = {"us": "ClosedHere", "server": "ClosedByServer", "network": "ConnectionLost"}[row.by]
        if row.phase == closes.SETUP:
            return f"{'SetupRefused' if row.by == 'server' else word}: {named}", "-", "-", True
        return "no error", "nothing" if row.by == "us" else f"{word}: {named}", f"{word}: {named}", True
    if row.code == USERS_CODE:  # passes for the user's, who is told of none; only a close of his own is noticed
        return "no error", "nothing", "no error", row.by == "us"
    if row.phase == closes.SETUP:
        return f"UnexpectedClosure: {row.code}", "-", "-", True
    return "no error", f"UnexpectedClosure: {row.code}", "no error", True


def rules_wrong(rows: Iterable[RulesRow]) -> Iterator[str]:
    """What contradicts: each server keeps to its profile's rules."""
    yield from _each("rules", rows, lambda row: (row.profile,), [(name,) for name in ENDPOINTS], rules_as_predicted)


def rules_as_predicted(row: RulesRow) -> bool:
    """The right server is the predicted one: none of them has a defect."""
    return row.ok


def _each(
    table: str,
    rows: Iterable[Row],
    key: Callable[[Row], tuple[Any, ...]],
    wanted: Collection[tuple[Any, ...]],
    as_predicted: Callable[[Row], bool],
) -> Iterator[str]:
    found = [(key(row), row) for row in rows]
    times = Counter(one for one, _ in found)
    for one in dict.fromkeys(wanted):
        if times[one] != 1:
            yield f"{table}: {times[one] or 'no'} row{'s' * (times[one] > 1)} for {', '.join(map(str, one))}"
    for one, row in found:
        if one not in wanted:
            yield f"{table}: a row that nobody asked for: {row}"
        elif not as_predicted(row):
            yield f"{table}: {row}"
