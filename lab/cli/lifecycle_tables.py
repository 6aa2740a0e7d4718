"""The tables of ``lab live lifecycle``, each below what it asks and what its columns are, in 80 columns or more."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from lab.cli import lifecycle_legends as legends
from lab.cli.grid import Grid
from lab.cli.lifecycle_hosts import grid as hosts_grid

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
    yield Text(legends.HEAD)
    yield from _titled(legends.LEAKS, _leaks(tables))
    yield from _titled(legends.SAID, _said(tables))
    yield from _titled(legends.REPEATED, _repeated(tables))
    yield from _titled(legends.LIMIT, _limit(tables))
    yield from _titled(legends.RULES, _rules(tables))
    yield from _titled(legends.RACE, _race(tables))
    yield from _titled(legends.SETUP, _closed_in_setup(tables))
    yield from _titled(legends.LATER, _closed_later(tables))
    yield Text(f"\n{legends.HOSTS}")
    for question, rows in groupby(hosts, key=lambda row: row.question):
        yield from _titled((f"Hosts: {question.value}", legends.HOST[question]), hosts_grid(list(rows)))


def verdict(tables: "Tables", hosts: Sequence["HostRow"], wrong: Sequence[str]) -> str:
    """The last line.

    Args:
        tables: What was measured.
        hosts: The same.
        wrong: What contradicts the predictions.
    """
    count = sum(map(len, tables.as_json().values())) + len(hosts)
    if not wrong:
        return f"Every repair holds and every defect shows, as predicted: {count} rows."
    found, rows = _counted(len(wrong), "contradiction"), _counted(count, "row")
    return f"NOT AS PREDICTED: {found} in {rows}; each is named on standard error."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _titled(words: tuple[str, str], grid: Grid) -> Iterator[object]:
    title, legend = words
    yield Text(f"\n{title}", style="bold")
    yield Text(legend)
    yield grid


def _leaks(tables: "Tables") -> Grid:
    """One line for each variant of a path: its servers are alike, and of each time the slowest stands for them."""
    grid = Grid("variant", AXIS, "server", "socket", "reader", whole=("variant", AXIS, "server", "socket", "reader"))
    for path, variants in groupby(_by_path(tables), key=lambda found: found[0]):
        grid.group(path)
        for _, variant, rows in variants:
            slowest = max(rows, key=_ended_s)
            ended = None if math.isinf(_ended_s(slowest)) else _ended_s(slowest)
            socket = _slowest([row.socket_over_in_s for row in rows])
            grid.add(variant, timeline(ended), _after(slowest), socket, _reader(rows), ok=_all_ok(rows))
    return grid


def _said(tables: "Tables") -> Grid:
    """One line for each path, if all variants say the same."""
    grid = Grid("path", "variant", "is_closed")
    said: dict[tuple[str, str], list[str]] = {}
    for path, variant, rows in _by_path(tables):
        for steps in dict.fromkeys(", then ".join("yes" if step else "no" for step in row.is_closed) for row in rows):
            if steps:
                said.setdefault((path, steps), []).append(variant)
    for (path, steps), variants in said.items():
        grid.add(path, _together(variants), steps, ok=True)
    return grid


def _together(variants: Iterable[str]) -> str:
    """Variants that are alike."""
    from lab.live.lifecycle import VARIANTS

    found = list(dict.fromkeys(variants))
    return "all three" if len(found) == len(VARIANTS) else ", ".join(found)


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
    return "open" if row.server_limit_s is None else f"{row.server_limit_s} s, its limit"


def _slowest(times: Sequence[float | None]) -> str:
    """The longest of them; open where one has not come."""
    came = [time for time in times if time is not None]
    return f"{max(came):.2f} s" if len(came) == len(times) else "open"


def _reader(rows: Sequence["LeakRow"]) -> str:
    """When the last reader came to its end."""
    if any(row.stream_failed for row in rows):
        return "error"
    times = [row.stream_ended_in_s for row in rows if row.stream_finished is not None]
    return _slowest(times) if times else "-"


def _repeated(tables: "Tables") -> Grid:
    grid = Grid("variant", "server", "ended", "slowest")
    for many in tables.repeated:
        slowest = "" if many.slowest_s is None else f"{many.slowest_s:.2f} s"
        grid.add(many.variant, many.profile, f"{many.closed} of {many.runs}", slowest, ok=many.ok)
    return grid


def _limit(tables: "Tables") -> Grid:
    grid = Grid("variant", "server", "limit", "refused", "counted")
    for row in tables.limit:
        refused = f"none of {row.attempts}" if row.refused_at is None else f"number {row.refused_at}"
        limit = "none" if row.limit is None else str(row.limit)
        grid.add(row.variant, row.profile, limit, refused, str(row.counted), ok=row.ok)
    return grid


def _rules(tables: "Tables") -> Grid:
    grid = Grid("server", "version", "handles", "none now", "late result")
    for row in tables.rules:
        grid.add(row.profile, row.version or "", str(row.handles), str(row.without), row.old_call, ok=row.ok)
    return grid


def _race(tables: "Tables") -> Grid:
    """One line for all variants that come out the same."""
    grid = Grid("variant", "reader", "recorded", "later sends")
    for order in dict.fromkeys(row.order for row in tables.race):
        alike: dict[tuple[tuple[str, ...], bool], list[str]] = {}
        for row in tables.race:
            if row.order == order:
                rights = (row.reader_right, row.recorded_first, row.sends_right)
                cells = tuple(f"{right} of {row.runs}" for right in rights)
                alike.setdefault((cells, row.ok), []).append(row.variant)
        grid.group(order)
        for (cells, ok), variants in alike.items():
            grid.add(_together(variants), *cells, ok=ok)
    return grid


def _closed_in_setup(tables: "Tables") -> Grid:
    from lab.study.lifecycle.closes import SETUP

    grid = Grid("who", "how, with which codes", "connect", "reader", "sends", "is_closed")
    for variants, rows in _alike(row for row in tables.closes if row.phase == SETUP):
        grid.group(variants)
        for cells, ok in rows:
            grid.add(*cells, ok=ok)
    return grid


def _closed_later(tables: "Tables") -> Grid:
    """Without ``connect``, which was told of no error by then."""
    from lab.study.lifecycle.closes import OPEN as LATER

    grid = Grid("who", "how, with which codes", "reader", "sends", "is_closed")
    for variants, rows in _alike(row for row in tables.closes if row.phase == LATER):
        grid.group(variants)
        for (who, how, _, *told), ok in rows:
            grid.add(who, how, *told, ok=ok)
    return grid


Told = tuple[tuple[str, ...], bool]
"""Who, how and with which codes, what was told, is_closed; and whether that is right."""


def _alike(rows: Iterable["CloseRow"]) -> Iterator[tuple[str, list[Told]]]:
    """Variants, and their lines: one for all codes that are told alike, and one block for all variants that are."""
    by_variant: dict[str, dict[tuple[str, ...], list[CloseRow]]] = {}
    for row in rows:
        told = tuple(_without(text, row.code) for text in (row.connect, row.reader, row.sender))
        key = (row.by, row.how, *told, "yes" if row.is_closed else "no")
        by_variant.setdefault(row.client, {}).setdefault(key, []).append(row)
    blocks: dict[tuple[Told, ...], list[str]] = {}
    for variant, lines in by_variant.items():
        block = tuple(
            ((who, f"{how}: {_codes([row.code for row in found])}", *told), _all_ok(found))
            for (who, how, *told), found in lines.items()
        )
        blocks.setdefault(block, []).append(variant)
    yield from ((_together(variants), list(block)) for block, variants in blocks.items())


def _codes(found: Sequence[int]) -> str:
    """Close codes; nearly all of them by those that are not among them."""
    from lab.study.lifecycle.closes import CODES

    missing = [str(code) for code in CODES if code not in found]
    if len(found) <= len(CODES) // 2:
        return ", ".join(map(str, found))
    return f"all but {', '.join(missing)}" if missing else f"all {len(CODES)}"


def _without(text: str, code: int) -> str:
    return text.replace(str(code), "CODE")


def _all_ok(rows: Iterable["LeakRow | CloseRow"]) -> bool:
    return all(row.ok for row in rows)
