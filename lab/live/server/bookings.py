"""What the backend has booked, for the status page: the file is the assistant's, and is only read here."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

TABLE = "bookings"
SHOWN = 50
"""Latest rows that are shown."""


def report(path: Path | None) -> dict[str, Any] | None:
    """How many bookings there are, and the latest; None where no file was named.

    Args:
        path: An SQLite file with a table ``bookings``.
    """
    if path is None:
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.2)) as opened:
            opened.row_factory = sqlite3.Row
            count = opened.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0]  # noqa: S608 - a constant
            rows = opened.execute(
                f"SELECT * FROM {TABLE} ORDER BY rowid DESC LIMIT ?",  # noqa: S608 - a constant
                (SHOWN,),
            ).fetchall()
    except sqlite3.Error as error:
        return {"count": None, "error": str(error)}
    return {"count": count, "rows": [dict(row) for row in reversed(rows)]}
