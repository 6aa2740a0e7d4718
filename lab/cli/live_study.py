"""``lab live study``: every session of the study and the new ones, in parallel, and what they show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lab.cli.live_matrix import Ran
    from lab.study.judgement import Row
    from lab.study.scenario import Scenario


def study(
    jobs: Annotated[int | None, typer.Option(min=1, help="Sessions at once; 100 without it.")] = None,
    real: Annotated[bool, typer.Option("--real", help="Real waits, but for P4, B1 and B2.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All waits real (15 min), and hundreds of sessions.")] = False,
    n: Annotated[int | None, typer.Option("-n", min=1, help="Sessions of each scenario.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="This scenario; repeatable.")] = None,
    published: Annotated[bool, typer.Option("--published", help="The study's own 43 sessions alone.")] = False,
    backend: Annotated[str, typer.Option(help="auto, netns or docker.")] = "auto",
    text: Annotated[bool, typer.Option("--text", help="The assistants type instead of speaking.")] = False,
    kept: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="DIR", help="Run nothing; judge this study's results again. Repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for everything.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as one JSON object.")] = False,
) -> None:
    """Run the study again: its 43 sessions, and the new scenarios, each session in a testbed of its own.

    Long waits are lapsed without --real or --full. Writes results/*.jsonl (a line as each session ends), FINDINGS.md,
    table.json and figures. Exit code 0: everything as modelled; 1: something is not; 3: sessions are INVALID.
    """
    from lab.cli.live_matrix import exit_code, run_matrix
    from lab.cli.output import print_json, print_out
    from lab.study.matrix import JOBS, plan
    from lab.study.publish import machine, publish, study_json

    chosen = _chosen(only or [], published=published)
    if kept:
        ran = _kept(chosen, kept, out)
    else:
        tasks = plan(chosen, n=n, real=real, full=full)
        ran = run_matrix(tasks, name="live-study", out=out, backend=backend, jobs=jobs or JOBS, text=text)
    publish(ran.out, ran.rows, machine(ran.took_s, ran.backend))
    if json:
        print_json(study_json(ran.rows))
    else:
        print_out(_table(ran.rows))
        sessions = sum(len(row.sessions) for row in ran.rows)
        within = "" if ran.took_s is None else f" in {ran.took_s:.0f} s"
        print_out(f"{sessions} sessions{within}. Everything is in {ran.out}/; read FINDINGS.md there.")
    if code := exit_code(ran.rows):
        raise SystemExit(code)


def _kept(chosen: "list[Scenario]", folders: list[Path], out: Path | None) -> "Ran":
    """The rows of sessions that were run before, by this or by several studies."""
    from collections import Counter
    from datetime import UTC, datetime

    from lab.cli.live_matrix import Ran
    from lab.cli.output import console
    from lab.core.errors import UsageError
    from lab.report.folder import RunFolder
    from lab.study.judgement import rows_of
    from lab.study.results import Results
    from lab.study.scenarios import find

    named = Counter(folder.resolve() for folder in folders)
    if twice := [folder for folder, times in named.items() if times > 1]:
        raise UsageError(f"{twice[0]} is named twice; its sessions would count twice.", fix="name it once")
    missing = [folder for folder in folders if not (folder / "results").is_dir()]
    if missing:
        raise UsageError(f"{missing[0]} holds no results.", fix="name a folder that `lab live study` has written")
    sessions = [session for folder in folders for session in Results(folder / "results").read()]
    for name in {session.scenario for session in sessions}:
        find(name)
    rows = rows_of(chosen, sessions)
    if not rows:
        raise UsageError("These results hold no session of the scenarios asked for.", fix="leave out --only")
    if absent := [scenario.id for scenario in chosen if all(row.scenario is not scenario for row in rows)]:
        console.print(f"No session was kept of {', '.join(absent)}.", style="dim")
    path = RunFolder.create("live-study", started=datetime.now(UTC).astimezone(), out=out).path
    return Ran(rows, path, None, "netns")


def _chosen(names: list[str], *, published: bool) -> "list[Scenario]":
    from lab.study.scenarios import PUBLISHED, SCENARIOS, find

    if names:
        return list(dict.fromkeys(map(find, names)))
    return list(PUBLISHED) if published else list(SCENARIOS.values())


def _table(rows: "list[Row]") -> object:
    """Every row, in 80 columns; the whole of it is in FINDINGS.md."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from lab.study.table import as_json, verdict

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in ("scenario", "n", "refused", "consistent", "double\nbookings", "verdict"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        shown = as_json(row)
        refused = f"{shown['refused']} of {shown['attempts']}"
        consistent = f"{shown['consistent']} of {shown['answers']}" if shown["answers"] else ""
        cells = (row.scenario.id, shown["n"], refused, consistent, shown["double_bookings"], verdict(row))
        table.add_row(*(Text(str(cell)) for cell in cells))
    return table
