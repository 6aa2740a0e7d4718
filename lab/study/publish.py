"""What a study leaves for people and scripts: FINDINGS.md, its figures and the table as JSON."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.report.folder import write_whole
from lab.study.figures import render
from lab.study.findings import Machine, findings, saved
from lab.study.judgement import Row
from lab.study.table import as_json

PAGE, TABLE, FIGURES = "FINDINGS.md", "table.json", "figures"


def publish(out: Path, rows: Sequence[Row], machine: Machine) -> None:
    """Write the page, the table and the figures; each is whole or not there.

    Args:
        out: The study's folder.
        rows: What came of it.
        machine: Where it was run.
    """
    figures = out / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for name, content in render(rows).items():
        write_whole(figures / name, content)
    write_whole(out / TABLE, (json.dumps(study_json(rows), indent=2, ensure_ascii=False) + "\n").encode())
    write_whole(out / PAGE, findings(rows, machine).encode())


def study_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The study for scripts."""
    return {"rows": [as_json(row) for row in rows], "parallel_saves_s": _rounded(saved(rows))}


def machine(took_s: float | None, backend: str) -> Machine:
    """This machine.

    Args:
        took_s: Wall seconds of the study; None where it was put together from several.
        backend: Where its testbeds were.
    """
    return Machine(os.uname().release, os.cpu_count() or 1, took_s, backend)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
