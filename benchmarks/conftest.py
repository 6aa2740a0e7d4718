"""Collects the figures of all benchmarks, prints them as one table, and writes docs/bench.md where asked to."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figure, machine, table

FIGURES = pytest.StashKey[list[Figure]]()
MACHINE = pytest.StashKey[str]()

TEXT = """# What it costs

Every figure is a ratio of two costs that were measured in the same run, taking turns, since a machine's speed and load
are not a property of the lab. Medians, with the middle half of the measurements in brackets where there are many.

`make bench` measures all of it and prints this table; `make bench BENCH_OUT=docs/bench.md` writes this page.

Measured on: {machine}.

{table}

What the figures mean, row by row, is said in the docstrings under `benchmarks/`.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the page goes."""
    parser.addoption("--figures", type=Path, metavar="FILE", help="write the table of figures to a Markdown file")


def pytest_configure(config: pytest.Config) -> None:
    """Look at the machine before the benchmarks load it."""
    config.stash[FIGURES] = []
    config.stash[MACHINE] = machine()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[[Figure], None]:
    """Takes a figure of this test."""
    command = f"pytest benchmarks/{request.path.name}"

    def add(figure: Figure) -> None:
        request.config.stash[FIGURES].append(replace(figure, command=command))

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and write the page."""
    figures = config.stash[FIGURES]
    if not figures:
        return
    terminalreporter.section("figures")
    terminalreporter.line(f"Measured on: {config.stash[MACHINE]}.\n")
    terminalreporter.line(table(figures))
    if path := config.getoption("figures"):
        path.write_text(TEXT.format(machine=config.stash[MACHINE], table=table(figures)), encoding="utf-8")
        terminalreporter.line(f"\nWritten to {path}.")
