"""What ``lab live run`` and ``lab live study`` share: sessions side by side, their progress, and the exit code."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.study.judgement import Row
    from lab.study.matrix import Progress, Task
    from lab.study.session_record import SessionRecord

DONE, REFUTED, INVALID = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it."""

    rows: "list[Row]"
    out: Path
    took_s: float | None
    """Wall seconds; None where nothing was run."""

    backend: str


def run_matrix(
    tasks: "Sequence[Task]",
    *,
    name: str,
    out: Path | None,
    backend: str,
    jobs: int,
    text: bool = False,
    seen: "Callable[[Task, SessionRecord], None]" = lambda _task, _record: None,
) -> Ran:
    """Run sessions side by side, with their progress on standard error.

    Args:
        tasks: What to run.
        name: Goes into a fresh folder's name.
        out: Folder for everything; a fresh one under ``runs/`` where None.
        backend: As the user said it.
        jobs: Sessions at once.
        text: The assistants type instead of speaking.
        seen: Shown every session.

    Raises:
        KeyboardInterrupt: passed on; what was over by then is on the disk.
    """
    from lab.cli.output import console
    from lab.live.voice.recogniser import require
    from lab.report.folder import RunFolder
    from lab.run.backend import name_of, opener
    from lab.study.matrix import Matrix
    from lab.study.performing import Performer

    opened = opener(backend, tell=lambda line: console.print(line, style="dim"))
    if not text and name_of(opened) == "netns":  # A container has its own.
        require()
    folder = RunFolder.create(name, started=datetime.now(UTC).astimezone(), out=out).path
    kind, began = name_of(opened), time.monotonic()
    with _told(len(tasks)) as tell:
        performer = Performer(opened, kind, text=text, seen=seen)
        matrix = Matrix(tasks, performer, folder, jobs=jobs, tell=tell)
        try:
            rows = matrix.start().rows()
        except BaseException:
            console.print(f"What was over by then is in {folder}/results/")
            raise
        finally:
            matrix.close()
    return Ran(rows, folder, time.monotonic() - began, kind)


def exit_code(rows: "Sequence[Row]") -> int:
    """0 where everything is as modelled, 3 where sessions could not prove themselves, 1 where something is not."""
    refuted = [row for row in rows if row.valid and not row.passed and _beyond_proof(row)]
    if refuted:
        return REFUTED
    return DONE if all(row.passed for row in rows) else INVALID


def _beyond_proof(row: "Row") -> bool:
    """Whether something is wrong with a row besides INVALID sessions."""
    invalid = sum(1 for each in row.sessions if not each.valid)
    return len(row.problems) > invalid or not all(each.standing.passed for each in row.findings)


class _told:  # noqa: N801 - reads as a with statement does
    """One line on a terminal that says how far it is; a line per session elsewhere."""

    def __init__(self, total: int) -> None:
        from lab.cli.output import console

        self._console = console
        self._status = console.status(f"0 of {total} sessions ...") if console.is_terminal else None

    def __enter__(self) -> "Callable[[Progress], None]":
        if self._status is not None:
            self._status.__enter__()
        return self._tell

    def __exit__(self, *exc: object) -> None:
        if self._status is not None:
            self._status.__exit__(None, None, None)

    def _tell(self, progress: "Progress") -> None:
        line = progress_line(progress)
        if self._status is not None:
            self._status.update(line + " ...")
        elif progress.latest is not None:
            self._console.print(line, soft_wrap=True)


def progress_line(progress: "Progress") -> str:
    """How far it is, in a line."""
    latest, again = progress.latest, f", {progress.again} run again" if progress.again else ""
    what = ""
    if latest is not None:
        state = "" if latest.valid else " INVALID"
        what = f": {latest.scenario} session {latest.number + 1}{state} in {latest.took_s:.1f} s"
    return f"{progress.done} of {progress.total} sessions{again}{what}"
