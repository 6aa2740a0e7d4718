"""``lab clean``: what a killed run left behind, only the lab's own."""

from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.output import print_json, print_out

if TYPE_CHECKING:
    from lab.testbed.sweep import Leftover


def clean(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Remove what a killed run left behind; only the lab's own, and only where its owner has ended.

    A testbed leaves nothing, even when it is killed; this finds runtime folders, fork servers that were stopped when
    their owner died, and containers, networks and volumes whose reaper was killed as well. A container
    that a killed `lab attach` had joined is restored.
    """
    from lab.cli.output import console
    from lab.testbed import sweep

    removed = sweep.sweep(console.print)
    if json:
        print_json({"removed": [{"kind": one.kind, "name": one.name, "owner": one.owner} for one in removed]})
        return
    for one in removed:
        print_out(_line(one))
    if not removed:
        print_out("Nothing was left behind.")


def _line(leftover: "Leftover") -> str:
    return f"removed {leftover.kind} {leftover.name}"
