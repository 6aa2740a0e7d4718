"""``lab report``: the report and the figure of a run folder, made anew from its record and timeline."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    directory: Annotated[Path, typer.Argument(help="Folder that `lab run` or `lab demo` has written.", metavar="DIR")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List every check, not just failed ones.")] = False,
) -> None:
    """Rebuild the report and the figure of a run, and print its summary. Needs no privileges.

    The exit code tells whether the report was made, not what came of the run.
    """
    from lab.cli.output import console, print_json, print_out
    from lab.report.build import rebuild
    from lab.report.folder import RunFolder
    from lab.report.summary import summarise
    from lab.report.text import as_text

    folder = RunFolder(directory)
    record = folder.read_record()
    with console.status("Drawing the figure"):
        written = rebuild(folder, record)
    if as_json:
        print_json({"folder": str(directory), "written": list(written), "record": record.to_dict()})
        return
    print_out(as_text(summarise(record), verbose=verbose))
    print_out("")
    print_out(f"Written to {directory}: {', '.join(written)}")
