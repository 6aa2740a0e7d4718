"""What ``lab run`` and ``lab demo`` share: the backend, the progress, the end."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import LabError
from lab.core.timeline import Observation

if TYPE_CHECKING:
    from lab.report.folder import RunFolder
    from lab.report.record import Record
    from lab.run.backend import Images
    from lab.run.spec import RunSpec


def retract(folder: "RunFolder") -> None:
    """Make the record of a run INVALID that was judged, but interrupted before its report was there."""
    from lab.report.record import Outcome

    record = folder.read_record()
    if record.outcome is not Outcome.INVALID:
        reason = f"the run was interrupted while its report was made; until then it was {record.outcome.value}"
        update = {"outcome": Outcome.INVALID, "interrupted": True, "reason": reason}
        folder.write_record(record.model_copy(update=update))


def execute(
    spec: "RunSpec",
    *,
    backend: str,
    out: Path | None,
    as_json: bool,
    images: "Images | None" = None,
    narrator: Callable[[str], AbstractContextManager[Callable[[Observation], None]]] | None = None,
) -> "Record":
    """Run, report, and leave with the outcome's exit code.

    Args:
        spec: What to run.
        backend: As the user said it.
        out: Folder, or None for a fresh one.
        images: The user's own, for the container backend.
        as_json: Print the record alone on standard output, that of a run that failed too.
        narrator: Given the backend, tells what happens while it does; a progress line where None.

    Raises:
        SystemExit: with the outcome's code, unless it is confirmed.
    """
    from lab.cli.output import console, print_json, print_out
    from lab.cli.progress import progress
    from lab.report.build import rebuild
    from lab.report.record import Outcome
    from lab.report.summary import summarise
    from lab.run.backend import name_of, opener
    from lab.run.runner import Run

    outside = spec.uplink is not None
    opened = opener(backend, images, lambda line: console.print(line, style="dim"), leads_outside=outside)
    run = Run(spec, opened, out=out, backend=name_of(opened))
    try:
        with narrator(name_of(opened)) if narrator else progress(console) as run.tell:
            record = run.execute()
        with console.status("Drawing the report ...") if console.is_terminal else nullcontext():
            rebuild(run.folder, record)
        record = record.model_copy(update={"artefacts": run.folder.artefacts()})
        run.folder.write_record(record)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            retract(run.folder)
        console.print(f"What was recorded so far is in {run.folder.path}/")
        if as_json and isinstance(error, LabError):
            print_json(run.folder.read_record().to_dict())
        raise
    if as_json:
        print_json(record.to_dict())
    else:
        from lab.report.text import as_text

        print_out(as_text(summarise(record), verbose=record.outcome is not Outcome.CONFIRMED))
        print_out(f"Everything is in {run.folder.path}/")
    codes = {Outcome.CONFIRMED: 0, Outcome.REFUTED: 1, Outcome.INVALID: 3, Outcome.UNSUPPORTED: 4}
    if code := codes[record.outcome]:
        raise SystemExit(code)
    return record
