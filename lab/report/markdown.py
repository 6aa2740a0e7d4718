"""A summary as report.md, with the figure."""

from collections.abc import Iterable

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
        parts += ["## Doubts", "The record contradicts its own outcome:", _list(summary.doubts)]
    if summary.checks:
        marks = ((f"{'ok' if check.ok else '**FAILED**'}", check.name, check.detail) for check in summary.checks)
        parts += ["## Checks", _list(f"{mark} {name}{': ' if detail else ''}{detail}" for mark, name, detail in marks)]
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


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {_escaped(sentence, keep='*')}" for sentence in sentences)


def _escaped(text: str, *, keep: str = "") -> str:
    """The text on one line, with what Markdown would read as its own taken literally."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" and letter not in keep else letter for letter in flat)
