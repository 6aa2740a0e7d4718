"""``lab doctor``: everything that is missing on this machine, each with its fix."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.testbed.requirement import Requirement

NOT_READY = 5
"""Exit code where the embedded testbed cannot run."""


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Find everything that is missing on this machine, each with its one-line fix.

    Namespaces, links, rules, packet sockets and socket diagnosis are tried in namespaces of their own; nothing of
    the host is touched. Exits with 0 where the embedded testbed can run, with 5 where it cannot.
    """
    from lab.cli.output import print_json
    from lab.testbed import preflight

    found = preflight.inspect()
    ready = preflight.is_ready(found)
    if json:
        print_json({"ready": ready, "requirements": [_as_json(one) for one in found], "versions": preflight.versions()})
    else:
        _show(found, ready)
    if not ready:
        raise typer.Exit(NOT_READY)


def _as_json(requirement: "Requirement") -> dict[str, Any]:
    return {
        "name": requirement.name,
        "status": requirement.status.value,
        "required": requirement.required,
        "seen": requirement.seen,
        "fix": requirement.fix,
    }


def _show(found: "Sequence[Requirement]", ready: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from lab.cli.output import print_out
    from lab.testbed.requirement import Status

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in found:
        style = "green" if one.status is Status.OK else "bold red" if one.blocks else "yellow"
        table.add_row(Text(one.status.value, style), one.name, one.seen)
        if one.fix is not None:
            table.add_row("", "", f"fix: {one.fix}")
    print_out(table)
    print_out()
    missing = sum(one.blocks for one in found)
    if ready:
        print_out("Ready: the embedded testbed can run.", style="bold green")
    else:
        print_out(f"Not ready: {missing} of {len(found)} requirements keep it from running.", style="bold red")
