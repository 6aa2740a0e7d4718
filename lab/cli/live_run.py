"""``lab live run``: one scenario of the study, or a new one, with its timeline, its verdict and its row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lab.study.judgement import Row
    from lab.study.matrix import Task
    from lab.study.session_record import SessionRecord

FEW = 3
"""So many sessions are told event by event."""

TITLE_AT, WORDS_AT, EVENT_AT = 30, 11, 29
"""Columns at which what a long line goes on with begins: in the list, in the verdict, in a session's story."""


def run(
    scenario: Annotated[str, typer.Argument(help="R0 to R4, P1 to P4, N1 to N3, B1 to B3, BR0 to BR2, ...")] = "",
    n: Annotated[int | None, typer.Option("-n", min=1, help="Sessions; the study's number without it.")] = None,
    real: Annotated[bool, typer.Option("--real", help="Real waits; B1, B2 and P4 take a quarter of an hour.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Sessions at once.")] = None,
    backend: Annotated[str, typer.Option(help="auto, netns or docker.")] = "auto",
    text: Annotated[bool, typer.Option("--text", help="The assistant types instead of speaking.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for everything.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the row as one JSON object.")] = False,
) -> None:
    """Run the sessions of one scenario side by side, each in a testbed of its own.

    Without a name it lists the scenarios. Exit code 0: as modelled; 1: not; 3: a session could not prove itself.
    """
    from lab.cli.live_matrix import exit_code, run_matrix
    from lab.cli.output import hanging, print_json, print_out
    from lab.study.matrix import JOBS, plan
    from lab.study.scenarios import find
    from lab.study.table import as_json

    if not scenario:
        _list()
        return
    chosen = find(scenario)
    stories: dict[int, SessionRecord] = {}

    def seen(task: "Task", record: "SessionRecord") -> None:
        stories[task.number] = record

    tasks = plan([chosen], n=n, full=real)
    ran = run_matrix(tasks, name=f"live-{chosen.id}", out=out, backend=backend, jobs=jobs or JOBS, text=text, seen=seen)
    (row,) = ran.rows
    if json:
        print_json(as_json(row))
    else:
        if len(tasks) <= FEW:
            for number in sorted(stories):
                _tell(stories[number])
        for line in _summary(row):
            print_out(hanging(line, WORDS_AT))
        print_out(f"Everything is in {ran.out}/")
    if code := exit_code(ran.rows):
        raise SystemExit(code)


def _list() -> None:
    from lab.cli.output import hanging, print_out
    from lab.study.scenarios import SCENARIOS

    for known in SCENARIOS.values():
        print_out(hanging(f"{known.id:22} n={known.n:<4} {known.title}", TITLE_AT))


def _tell(record: "SessionRecord") -> None:
    """A session's story."""
    from lab.cli.output import hanging, print_out
    from lab.study.narrative import narrate

    print_out(f"session {record.number + 1}: session time, time from the loss, who, what")
    for line in narrate(record.observed):
        print_out(hanging(line, EVENT_AT))
    print_out("")


def _summary(row: "Row") -> list[str]:
    """The verdict, ours beside the study's, and why it is not in range."""
    from lab.study.table import ours, verdict

    said = f"study      {row.scenario.study}" if row.scenario.published else f"predicted  {row.scenario.prediction}"
    wrong = [f"WRONG ON PURPOSE: {row.scenario.wrong_on_purpose}"] if row.scenario.wrong_on_purpose else []
    return [
        f"{verdict(row).upper()}: {row.scenario.id}, {row.scenario.title}",
        *wrong,
        f"sessions   {len(row.valid)} of {len(row.sessions)} valid",
        f"ours       {ours(row)}",
        said,
        *(f"why        {reason}" for reason in row.reasons),
    ]
