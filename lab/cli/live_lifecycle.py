"""``lab live lifecycle``: how sessions end, with the defects and without them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lab.host.tables import Row as HostRow
    from lab.study.lifecycle.tables import Tables

FAILURE = 1


def lifecycle(
    repeats: Annotated[
        int, typer.Option(min=1, help="Sessions released at each server, for each variant that closes.")
    ] = 100,
    races: Annotated[int, typer.Option(min=1, help="Close races at random, for each variant.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print all rows as one JSON object.")] = False,
) -> None:
    """Run the tables of released sessions, the close race, close codes and session hosts (half a minute).

    Each row is run with the published defect and with its repair, on loopback; what packet loss does to them is in
    `pytest lab/`. Exit code 0: every repair holds and every defect shows as predicted; 1: something does not; 3: a
    session was never seen by its server, or was over before it was left.
    """
    import asyncio

    from lab.cli.output import console, print_json
    from lab.host.tables import host_rows
    from lab.study.lifecycle.tables import measure

    console.print("Releasing sessions on every path, and watching their servers (20 s) ...", style="dim")
    tables = asyncio.run(measure(repeats=repeats, races=races))
    console.print("Ending sessions under hosts, with each defect and without (5 s) ...", style="dim")
    hosts = host_rows()
    wrong = tables.failures + [f"host: {row}" for row in hosts if not row.ok]
    if json:
        print_json(as_json(tables, hosts))
    else:
        _show(tables, hosts)
    for failure in wrong:
        console.print(failure, style="red")
    if wrong:
        raise SystemExit(FAILURE)


def as_json(tables: "Tables", hosts: Iterable["HostRow"]) -> dict[str, Any]:
    """All rows, as the contract has them."""
    return {**tables.as_json(), "host": [row.as_dict() for row in hosts]}


def _show(tables: "Tables", hosts: Sequence["HostRow"]) -> None:
    from lab.cli.lifecycle_tables import shown
    from lab.cli.output import print_out

    for part in shown(tables, hosts):
        print_out(part)
