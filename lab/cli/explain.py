"""``lab explain``: what happened to each flow of a capture."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lab.pcap import Capture

PATIENCE_S = 1.0
"""Whoever waits longer than this is shown how far it is."""


def explain(
    file: Annotated[Path, typer.Argument(help="A pcap or pcapng file, gzipped or not.", metavar="FILE")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Say what each flow of a capture went through: silence, copies, back-off, how it ended.

    Times count from the capture's first packet. One vantage point cannot tell everything; the sentences say
    where it cannot.
    """
    from lab.cli.output import print_json, print_out
    from lab.pcap import Capture
    from lab.pcap.flows import read_flows
    from lab.report.explanation import as_object, as_text

    capture = Capture(file)
    with _progress(capture) as tick:
        found = read_flows(capture, tick=tick)
    if as_json:
        print_json(as_object(found))
    else:
        print_out(as_text(found))


@contextmanager
def _progress(capture: "Capture") -> Iterator[Callable[[], None] | None]:
    """What is called now and then to show how far reading is; nothing is shown off a terminal or within a second."""
    from lab.cli.output import console

    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    size = max(1, capture.size)
    began = time.monotonic()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(f"Reading {capture.path.name}", total=size, visible=False)

        def tick() -> None:
            late = time.monotonic() - began > PATIENCE_S
            bar.update(task, completed=capture.read_octets, visible=late)

        yield tick
