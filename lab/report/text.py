"""A summary for the terminal: at most 80 columns, and as readable without colour."""

from typing import TYPE_CHECKING

from lab.report.record import Outcome
from lab.report.summary import Summary

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {
    Outcome.CONFIRMED: "bold green",
    Outcome.REFUTED: "bold red",
    Outcome.UNSUPPORTED: "bold yellow",
    Outcome.INVALID: "bold yellow",
}

_LABEL_WIDTH = 14


def as_text(summary: Summary, *, verbose: bool = False) -> "RenderableType":
    """The summary as rich renderables.

    Args:
        summary: What to say.
        verbose: List every check, not just the ones that failed, which come first.
    """
    from rich.console import Group
    from rich.text import Text

    verdict = Text.assemble((f"{summary.headline}:", _STYLES[summary.outcome]), " ", summary.verdict)
    checks = (*summary.failed, *(check for check in summary.checks if verbose and check.ok))
    lines = [(("check ok" if check.ok else "check FAILED"), _sentence(check.name, check.detail)) for check in checks]
    lines += [("doubt", doubt) for doubt in summary.doubts]
    artefacts = [("artefacts", ", ".join(summary.artefacts))] if summary.artefacts else []
    table = [_table(summary), ""] if summary.rows else []
    return Group(verdict, "", _pairs(summary.facts), "", *table, _pairs((*lines, *summary.closing, *artefacts)))


def _sentence(name: str, detail: str) -> str:
    return f"{name}: {detail}" if detail else name


def _pairs(pairs: tuple[tuple[str, str], ...]) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        # Text, not str: addresses and programs' words may look like markup.
        grid.add_row(Text(name, style="bold red" if "FAILED" in name or name == "doubt" else "dim"), Text(value))
    return grid


def _table(summary: Summary) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in ("", "client\npredicted", "client\nmeasured", "server\npredicted", "server\nmeasured"):
        table.add_column(heading, overflow="fold")
    for row in summary.rows:
        table.add_row(*(Text(cell) for cell in (row.quantity, *row.client, *row.server)))
    return table
