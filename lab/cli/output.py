"""Where a command's words go: results to standard output, everything else to standard error.

Rich is imported with its first use, so that ``--json`` and ``--help`` do not pay for it (0.15 s). Neither console reads
markup: ``[2001:db8::1]:80`` is an address here, not a style. Style with ``rich.text.Text`` or ``style=``.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console

    console: Console

BROKEN_PIPE = 141
"""Exit code when the reader of our output went away: 128 + SIGPIPE, as for a program that the signal ends."""

PLAIN_WIDTH = 80
"""Columns of anything that is not a terminal, and what every table has to fit."""


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object, and nothing else, on standard output.

    Args:
        result: JSON values only; a figure that does not exist is None, never NaN.

    Raises:
        ValueError: a number is not finite.
        TypeError: a value has no JSON form.
    """
    text = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_gone()


def print_out(renderable: object = "", *, style: str | None = None, wide: bool = False) -> None:
    """Print a result for people on standard output.

    Args:
        renderable: Text, or anything that rich renders.
        style: Rich style of the whole, such as ``bold green``.
        wide: It gains by more columns: where there is no terminal, ``COLUMNS`` counts if it says more than 80.
    """
    found = _console(stderr=False)
    if wide and not found.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        found.width = max(PLAIN_WIDTH, int(columns)) if columns.isdecimal() else PLAIN_WIDTH
    found.print(renderable, style=style)
    sys.stdout.flush()


def hanging(text: str, indent: int) -> str:
    """A long line in as many as fit, all but the first indented; words stay whole.

    Args:
        text: One line.
        indent: Columns.
    """
    import textwrap

    width = _console(stderr=False).width
    return textwrap.fill(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> NoReturn:
            # Rich would exit with 1, which is "refuted" here.
            _reader_gone()

    found = QuietConsole(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not found.is_terminal:
        # Rich asks any terminal it finds for its width, standard input's too.
        found.width = PLAIN_WIDTH
    return found


def _reader_gone() -> NoReturn:
    # Python flushes both streams once more on its way out; let that go nowhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    raise SystemExit(BROKEN_PIPE)


def __getattr__(name: str) -> object:
    # ``console``: made at its first use (PEP 562).
    if name == "console":
        return globals().setdefault(name, _console(stderr=True))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
