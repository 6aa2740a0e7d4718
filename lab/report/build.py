"""Everything that is made from a run folder's record and timeline alone."""

from lab.report.folder import REPORT, TIMELINE, RunFolder, write_whole
from lab.report.record import Record
from lab.report.timeline import read_timeline


def rebuild(folder: RunFolder, record: Record) -> tuple[str, ...]:
    """Write report.md, figure.png and figure.svg; the same record and timeline give the same bytes.

    Args:
        folder: Where the timeline is and the files go.
        record: The folder's record.

    Returns:
        What was written, relative to the folder.

    Raises:
        EnvironmentNotReady: the folder cannot be written to, or its disk is full.
    """
    from lab.report.figure import render
    from lab.report.markdown import as_markdown
    from lab.report.summary import summarise

    files = {REPORT: as_markdown(summarise(record)).encode()}
    files |= render(record, read_timeline(folder.file(TIMELINE)))
    for name, content in files.items():
        write_whole(folder.file(name), content)
    return tuple(files)
