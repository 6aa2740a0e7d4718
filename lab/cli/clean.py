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

    A process that is killed leaves its runtime folder, which holds files only. This removes those, fork servers that
    were stopped when their owner died, and containers, networks and volumes whose reaper was killed as well. A
    container that a killed `lab attach` had joined is restored. Exits with 5 where something could not be removed.
    """
    from lab.cli.output import console
    from lab.core.errors import EnvironmentNotReady
    from lab.testbed import sweep

    found = sweep.find_on_engines()
    removed = sweep.sweep(console.print)
    left = sweep.await_removal(found, sweep.PATIENCE_S)
    if json:
        print_json({"removed": [_as_json(one) for one in removed], "left": [_as_json(one) for one in left]})
    else:
        for one in removed:
            print_out(f"removed {one.kind} {one.name}")
        if not removed and not left:
            print_out("Nothing was left behind.")
    if left:
        names = ", ".join(f"{one.kind} {one.name}" for one in left)
        raise EnvironmentNotReady(
            f"Of ended processes there is still: {names}.",
            fix="lab clean again; of what stays, docker logs and docker inspect say why",
        )


def _as_json(leftover: "Leftover") -> dict[str, str]:
    return {"kind": leftover.kind, "name": leftover.name, "owner": leftover.owner}
