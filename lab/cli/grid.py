"""A table that fits its console: columns give way to each other, words and figures stay whole.

Rich breaks a long word although another column has room; in a table of error names that is every other line.
"""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

GAPS = (2, 1)
"""Columns of the console between two of the table: the first with which no cell has to be broken, else the last."""

MARK = "!"
"""Before a row that shows a defect, for whoever sees no colours."""


class Grid:
    """Headings, rows, and titles between them.

    Args:
        headings: Of all columns.
        whole: Headings of columns whose cells are never broken in two lines.
    """

    def __init__(self, *headings: str, whole: Collection[str] = ()) -> None:
        self._headings = headings
        self._whole = whole
        self._rows: list[tuple[tuple[str, ...], bool] | str] = []
        """Cells and whether they are no defect; or a title."""

    def add(self, *cells: str, ok: bool) -> None:
        """A row.

        Args:
            cells: One for each heading.
            ok: Not a defect: it has no mark.
        """
        self._rows.append((cells, ok))

    def group(self, title: str) -> None:
        """A line of its own above rows that belong together."""
        self._rows.append(title)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Text]:
        indent = " " * (len(MARK) + 1)
        gap, widths = self._widths(options.max_width - len(indent))
        yield from (Text(indent + line) for line in _lines(self._headings, widths, gap))
        yield Text("─" * (len(indent) + sum(widths) + gap * (len(widths) - 1)), style="dim")
        for row in self._rows:
            if isinstance(row, str):
                yield Text(row)
                continue
            cells, ok = row
            for number, line in enumerate(_lines(cells, widths, gap)):
                before = indent if ok or number else MARK.ljust(len(indent))
                yield Text(before + line, style="" if ok else "red")

    def _widths(self, width: int) -> tuple[int, list[int]]:
        """The gap, and of each column what its longest word needs, and a share of the rest up to its longest cell."""
        columns = list(zip(self._headings, *(row[0] for row in self._rows if not isinstance(row, str)), strict=True))
        wanted = [max(map(len, column)) for column in columns]
        least = [
            most if column[0] in self._whole else max(len(word) for cell in column for word in [*cell.split(), ""])
            for column, most in zip(columns, wanted, strict=True)
        ]
        gap = next((gap for gap in GAPS if sum(wanted) + gap * (len(columns) - 1) <= width), GAPS[-1])
        room = max(width - sum(least) - gap * (len(columns) - 1), 0)
        by_lack = sorted(range(len(columns)), key=lambda number: wanted[number] - least[number])
        for place, number in enumerate(by_lack):
            more = min(wanted[number] - least[number], room // (len(by_lack) - place))
            least[number] += more
            room -= more
        return gap, least


def _lines(cells: Sequence[str], widths: Sequence[int], gap: int) -> Iterator[str]:
    """A row in as many lines as its fullest cell needs."""
    wrapped = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) if len(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        parts = [
            (lines[number] if number < len(lines) else "").ljust(width)
            for lines, width in zip(wrapped, widths, strict=True)
        ]
        yield (" " * gap).join(parts).rstrip()
