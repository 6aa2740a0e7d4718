"""``lab live lifecycle``: how sessions end, with the defects and without them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.study.lifecycle.predictions import FEWEST_RACES

if TYPE_CHECKING:
    from lab.host.tables import Row as HostRow
    from lab.study.lifecycle.tables import Tables

CONFIRMED, REFUTED = "confirmed", "refuted"
"""The outcome, in the words of a run's record."""

FAILURE = 1


def lifecycle(
    repeats: Annotated[
        int, typer.Option(min=1, help="Sessions released at each server, 100 at a time, for each variant that closes.")
    ] = 100,
    races: Annotated[int, typer.Option(min=FEWEST_RACES, help="Close races at random, for each variant.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print all rows as one JSON object.")] = False,
) -> None:
    """Run the tables of released sessions, the close race, close codes and session hosts (about half a minute).

    Each row is run with the published defect and with its repair, on loopback; what packet loss does to them is in
    `pytest lab/`. Exit code 0: every repair holds and every defect shows as predicted; 1: something does not; 3: a
    session was never seen by its server, was over before it was left, or the machine was too busy; 5: it lacks files or
    ports, or loopback.
    """
    import asyncio

    from lab.cli.lifecycle_machine import check, in_a_sentence
    from lab.cli.output import console, print_json
    from lab.host.tables import host_rows
    from lab.study.lifecycle.tables import measure

    check()
    console.print("Releasing sessions on every path, and watching their servers ...", style="dim")
    with in_a_sentence():
        tables = asyncio.run(measure(repeats=repeats, races=races))
        console.print("Ending sessions under hosts, with each defect and without ...", style="dim")
        hosts = host_rows()
    wrong = contradictions(tables, hosts)
    for failure in wrong:
        console.print(failure, style="red")
    if json:
        print_json(as_json(tables, hosts))
    else:
        _show(tables, hosts, wrong)
    if wrong:
        raise SystemExit(FAILURE)


def contradictions(tables: "Tables", hosts: Sequence["HostRow"]) -> list[str]:
    """What does not show what was predicted of it, or is missing; a line each."""
    return [*tables.failures, *(f"host: {row}" for row in hosts if not row.as_predicted)]


def as_json(tables: "Tables", hosts: Sequence["HostRow"]) -> dict[str, Any]:
    """The outcome, and all rows, as the contract and docs/lifecycle.md have them."""
    wrong = contradictions(tables, hosts)
    return {
        "outcome": REFUTED if wrong else CONFIRMED,
        "contradictions": wrong,
        **tables.as_json(),
        "host": [row.as_dict() for row in hosts],
    }


def _show(tables: "Tables", hosts: Sequence["HostRow"], wrong: Sequence[str]) -> None:
    from lab.cli.lifecycle_tables import shown, verdict
    from lab.cli.output import print_out

    for part in shown(tables, hosts):
        print_out(part, wide=True)
    print_out(f"\n{verdict(tables, hosts, wrong)}", style="bold red" if wrong else "bold green", wide=True)
