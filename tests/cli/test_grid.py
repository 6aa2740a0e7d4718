"""A table gives way column by column, and breaks no word and no figure."""

import io

from rich.console import Console

from lab.cli.grid import Grid


def drawn(grid: Grid, width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width, force_terminal=False, markup=False, highlight=False)
    out.print(grid)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


def grid() -> Grid:
    found = Grid("what", "told", "after", whole=("after",))
    found.group("a title that is wider than the first column")
    found.add("one two three", "UnexpectedClosure: CODE", "0.01 s", ok=False)
    found.add("x", "", "", ok=True)
    return found


def test_where_all_fits_each_row_is_a_line_and_columns_stand_apart() -> None:
    assert drawn(grid(), 60) == [
        "  what           told                     after",
        "─" * 48,
        "a title that is wider than the first column",
        "! one two three  UnexpectedClosure: CODE  0.01 s",
        "  x",
    ]


def test_a_row_of_a_table_with_one_column_is_no_title() -> None:
    narrow = Grid("what")
    narrow.group("a title that is wider than the column")
    narrow.add("told", ok=False)
    narrow.add("x", ok=True)

    assert drawn(narrow, 60) == ["  what", "─" * 6, "a title that is wider than the column", "! told", "  x"]


def test_where_it_does_not_what_lacks_least_is_whole_first() -> None:
    assert drawn(grid(), 44)[3:5] == ["! one two     UnexpectedClosure: CODE 0.01 s", "  three"]


def test_words_and_whole_columns_are_never_broken() -> None:
    words = " ".join(drawn(grid(), 34)).split()

    assert {"UnexpectedClosure:", "three", "0.01"} <= set(words)
    assert any(line.endswith("0.01 s") for line in drawn(grid(), 34))
    assert max(map(len, drawn(grid(), 34)[3:])) <= 34


def test_what_goes_on_below_a_marked_row_has_no_mark_of_its_own() -> None:
    assert sum(line.startswith("!") for line in drawn(grid(), 34)) == 1
