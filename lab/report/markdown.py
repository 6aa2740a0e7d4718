"""A summary as report.md, with the figure."""

from collections.abc import Iterable

from lab.report.record import Check
from lab.report.summary import Row, Summary

_HEADINGS = ("", "client, predicted", "client, measured", "server, predicted", "server, measured")


def as_markdown(summary: Summary) -> str:
    """The summary as a Markdown page; every check is on it, for whoever has no terminal at hand."""
    parts = [
        f"# {summary.headline}",
        _escaped(summary.verdict),
        _bullets(summary.facts),
        "![What each end sent and when it gave up, on a time axis](figure.svg)",
    ]
    if summary.rows:
        parts.append(_table(summary.rows))
    if summary.closing:
        parts.append(_bullets(summary.closing))
    if summary.doubts:
        doubts = "\n".join(f"- {_escaped(doubt)}" for doubt in summary.doubts)
        parts += ["## Doubts", "The record contradicts its own outcome:", doubts]
    if summary.checks:
        parts += ["## Checks", "\n".join(map(_check, summary.checks))]
    if summary.artefacts:
        parts += ["## Artefacts", "\n".join(f"- [{_escaped(path)}](<{path}>)" for path in summary.artefacts)]
    return "\n\n".join(parts) + "\n"


def _table(rows: Iterable[Row]) -> str:
    lines = [_line(_HEADINGS), _line(["---"] * len(_HEADINGS))]
    lines += [_line([row.quantity, *row.client, *row.server]) for row in rows]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _bullets(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {_escaped(value)}" for name, value in pairs)


def _check(check: Check) -> str:
    detail = f": {_escaped(check.detail)}" if check.detail else ""
    return f"- {'ok' if check.ok else '**FAILED**'} {_escaped(check.name)}{detail}"


def _escaped(text: str) -> str:
    """The text on one line, with what Markdown would read as its own taken literally."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in flat)
