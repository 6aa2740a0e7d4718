"""The tables of ``lab live lifecycle``, in 80 columns."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from lab.host.tables.without_session import ASKS

if TYPE_CHECKING:
    from lab.host.tables import Row as HostRow
    from lab.study.lifecycle.closes import CloseRow
    from lab.study.lifecycle.leaks import LeakRow
    from lab.study.lifecycle.tables import Tables

WIDTH = 20
"""Columns of a timeline."""

FIRST_S, LAST_S = 0.01, 1000.0
"""Its ends; time is logarithmic, since a repair takes milliseconds where a server's limit takes minutes."""

OPEN, ENDED, NEVER = "=", "x", ">"

AXIS = f"{FIRST_S:g} s".ljust(WIDTH - 6) + f"{LAST_S:g} s"
"""The heading of a timeline."""

REQUESTS = frozenset(type(ask).__name__ for ask in ASKS)


def timeline(ended_s: float | None) -> str:
    """A connection from the moment when it was left to its end.

    Args:
        ended_s: Seconds; None where it did not end within the watch.
    """
    if ended_s is None:
        return OPEN * (WIDTH - 1) + NEVER
    place = (math.log10(max(ended_s, FIRST_S)) - math.log10(FIRST_S)) / (math.log10(LAST_S) - math.log10(FIRST_S))
    return OPEN * min(round(place * (WIDTH - 1)), WIDTH - 1) + ENDED


def shown(tables: "Tables", hosts: Sequence["HostRow"]) -> Iterator[object]:
    """Everything, in the order of reading."""
    yield from _titled(
        "Left sessions, until server, kernel and reader saw the end (the slowest of four servers; 480 s: its limit)",
        _leaks(tables),
    )
    yield from _titled("What those sessions said: connected, closed, resumed", _said(tables))
    yield from _titled("Sessions released at about the same time, and those that ended", _repeated(tables))
    yield from _titled("Sessions opened one after the other, none closed", _limit(tables))
    yield from _titled("What the servers do differently, as a session sees it", _rules(tables))
    yield from _titled("Our close against the receive that fails at it: runs that were right", _race(tables))
    yield from _titled("Who closed, and what the application is told", _closes(tables.closes))
    for question, rows in groupby(hosts, key=lambda row: row.question):
        yield from _titled(f"Hosts: {question.value}", _hosts(list(rows)))


def _titled(title: str, table: Table) -> Iterator[object]:
    yield Text(f"\n{title}", style="bold")
    yield table


def _leaks(tables: "Tables") -> Table:
    """One line for each variant and path: its servers are alike, and of each time the slowest stands for them."""
    table = _table("path", "variant", AXIS, "server", "socket", "stream")
    for path, variant, rows in _by_path(tables):
        slowest = max(rows, key=_ended_s)
        ended = None if math.isinf(_ended_s(slowest)) else _ended_s(slowest)
        socket = _slowest([row.socket_over_in_s for row in rows])
        streams = [row for row in rows if row.stream_finished is not None]
        stream = _slowest([row.stream_ended_in_s for row in streams]) if streams else ""
        _add(table, path, variant, timeline(ended), _after(slowest), socket, stream, ok=_all_ok(rows))
    return table


def _said(tables: "Tables") -> Table:
    """One line for each path, if all variants say the same."""
    table = _table("path", "variant", "is_closed")
    said: dict[tuple[str, str], list[str]] = {}
    for path, variant, rows in _by_path(tables):
        for steps in dict.fromkeys(", then ".join("yes" if step else "no" for step in row.is_closed) for row in rows):
            if steps:
                said.setdefault((path, steps), []).append(variant)
    for (path, steps), variants in said.items():
        _add(table, path, ", ".join(dict.fromkeys(variants)), steps, ok=True)
    return table


def _by_path(tables: "Tables") -> Iterator[tuple[str, str, list["LeakRow"]]]:
    """Path, variant, and their rows."""
    for path in dict.fromkeys(row.path for row in tables.leaks):
        for variant in dict.fromkeys(row.variant for row in tables.leaks):
            if rows := [row for row in tables.leaks if (row.path, row.variant) == (path, variant)]:
                yield path, variant, rows


def _ended_s(row: "LeakRow") -> float:
    if row.closed_in_s is not None:
        return row.closed_in_s
    return math.inf if row.server_limit_s is None else float(row.server_limit_s)


def _after(row: "LeakRow") -> str:
    if row.closed_in_s is not None:
        return f"{row.closed_in_s:.2f} s"
    return "never" if row.server_limit_s is None else f"{row.server_limit_s} s"


def _slowest(times: Sequence[float | None]) -> str:
    """The longest of them; open where one has not come."""
    came = [time for time in times if time is not None]
    return f"{max(came):.2f} s" if len(came) == len(times) else "open"


def _repeated(tables: "Tables") -> Table:
    table = _table("server", "variant", "ended", "slowest")
    for many in tables.repeated:
        slowest = "" if many.slowest_s is None else f"{many.slowest_s:.2f} s"
        _add(table, many.profile, many.variant, f"{many.closed} of {many.runs}", slowest, ok=many.ok)
    return table


def _limit(tables: "Tables") -> Table:
    table = _table("server", "limit", "variant", "refused at", "counted")
    for row in tables.limit:
        refused = "never" if row.refused_at is None else str(row.refused_at)
        _add(table, row.profile, str(row.limit), row.variant, refused, str(row.counted), ok=row.ok)
    return table


def _rules(tables: "Tables") -> Table:
    table = _table("server", "version", "handles", "none now", "call of a former connection")
    for row in tables.rules:
        _add(table, row.profile, row.version or "", str(row.handles), str(row.without), row.old_call, ok=row.ok)
    return table


def _race(tables: "Tables") -> Table:
    table = _table("order", "variant", "runs", "reader", "recorded", "later sends")
    for row in tables.race:
        figures = (row.runs, row.reader_right, row.recorded_first, row.sends_right)
        _add(table, row.order, row.variant, *map(str, figures), ok=row.ok)
    return table


def _closes(rows: Iterable["CloseRow"]) -> Table:
    """One line for all codes that are told alike."""
    table = _table("client", "end", "connect", "reader", "later sends", "is_closed")
    alike: dict[tuple[str, ...], list[CloseRow]] = {}
    for row in rows:
        told = tuple(_without(text, row.code) for text in (row.connect, row.reader, row.sender))
        alike.setdefault((row.client, row.phase, row.how, row.by, *told, "yes" if row.is_closed else "no"), []).append(
            row
        )
    for (client, phase, how, by, *words), found in alike.items():
        _add(table, client, f"{by}, {phase}, {how}: {_codes([row.code for row in found])}", *words, ok=_all_ok(found))
    return table


def _codes(found: Sequence[int]) -> str:
    """Close codes; nearly all of them by those that are not among them."""
    from lab.study.lifecycle.closes import CODES

    missing = [str(code) for code in CODES if code not in found]
    if len(found) <= len(CODES) // 2:
        return ", ".join(map(str, found))
    return f"all but {', '.join(missing)}" if missing else f"all {len(CODES)}"


def _without(text: str, code: int) -> str:
    return text.replace(str(code), "CODE")


def _hosts(rows: Sequence["HostRow"]) -> Table:
    """One line for a case over both carriers, and for all requests that fare alike."""
    table = _table("case", "variant", "over", "seen", "after")
    alike: dict[tuple[str, str, str], list[HostRow]] = {}
    for row in rows:
        alike.setdefault((_kind(row.case), row.variant, row.seen), []).append(row)
    for (kind, variant, seen), found in alike.items():
        cases = list(dict.fromkeys(row.case for row in found))
        case = cases[0] if len(cases) == 1 else f"{len(cases)} requests {kind}"
        times = [row.after_s for row in found if row.after_s is not None]
        after = f"{max(times):.2f} s" if times else ""
        over = ", ".join(dict.fromkeys(row.transport for row in found))
        _add(table, case, variant, over, seen, after, ok=all(row.right for row in found))
    return table


def _kind(case: str) -> str:
    """What a case is about; of one that each request has, without the request."""
    request, _, rest = case.partition(" ")
    return rest if request in REQUESTS else case


def _all_ok(rows: Iterable["LeakRow | CloseRow"]) -> bool:
    return all(row.ok for row in rows)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading == AXIS)
    return table


def _add(table: Table, *cells: str, ok: bool) -> None:
    """A row; a defect that shows is red."""
    table.add_row(*(Text(cell) for cell in cells), style=None if ok else "red")
