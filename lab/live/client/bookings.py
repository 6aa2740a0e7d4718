"""The bookings: SQLite, whose count of rows is the ground truth of every run.

The file can be read by anybody while the assistant runs. Faults are real ones where SQLite has them: a full disk is a
limit on the file's pages, and the error is SQLite's own.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, LabError

FIRST_ID = 1001
"""Confirmation ids are BK-1001, BK-1002, ...; study.md's first is BK-1001."""

_TABLES = """
CREATE TABLE IF NOT EXISTS bookings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    confirmation_id TEXT GENERATED ALWAYS AS ('BK-' || number),
    slot TEXT NOT NULL,
    business_key TEXT NOT NULL {unique},
    call_id TEXT NOT NULL,
    committed_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS receipts (number INTEGER PRIMARY KEY, receipt BLOB NOT NULL);
"""

_RECEIPT_BYTES = 4096
"""A page, so that every booking needs room on the disk and a full one refuses the very next."""


class BookingError(LabError):
    """A booking that could not be committed."""


@dataclass(frozen=True, slots=True)
class Booking:
    """One row."""

    confirmation_id: str
    slot: str
    """As the call gave it."""

    key: str
    """The business key."""

    call_id: str
    """The call that it was made for."""

    committed_at: float
    """Session time, seconds."""


class Bookings:
    """The table of one run.

    Args:
        file: Where; None to keep it in memory.
        unique: Let the database itself refuse a second booking under the same key.

    Raises:
        EnvironmentNotReady: the file cannot be opened or is no database.
    """

    def __init__(self, file: Path | None = None, *, unique: bool = False) -> None:
        try:
            self._database = sqlite3.connect(":memory:" if file is None else file, isolation_level=None)
            self._database.executescript(_TABLES.format(unique="UNIQUE" if unique else ""))
            self._database.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'bookings', ? "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'bookings')",
                (FIRST_ID - 1,),
            )
        except sqlite3.Error as error:
            raise EnvironmentNotReady(
                f"The bookings file {file} cannot be used: {error}.",
                fix="--bookings with a new file in a writable folder",
            ) from error

    def commit(self, slot: str, *, key: str, call_id: str, now: float) -> Booking:
        """Book, durably.

        Raises:
            BookingError: the database refused; a second booking under a unique key names the first.
        """
        try:
            with self._transaction():
                number = self._database.execute(
                    "INSERT INTO bookings (slot, business_key, call_id, committed_at) VALUES (?, ?, ?, ?)",
                    (slot, key, call_id, now),
                ).lastrowid
                self._database.execute("INSERT INTO receipts VALUES (?, zeroblob(?))", (number, _RECEIPT_BYTES))
        except sqlite3.IntegrityError as error:
            raise BookingError(f"{key} is booked already.") from error
        except sqlite3.Error as error:
            raise BookingError(f"The booking was not committed: {error}.") from error
        return self.rows()[-1]

    def count(self) -> int:
        """How many bookings there are."""
        return len(self.rows())

    def rows(self) -> list[Booking]:
        """All of them, oldest first."""
        columns = "confirmation_id, slot, business_key, call_id, committed_at"
        return [Booking(*row) for row in self._database.execute(f"SELECT {columns} FROM bookings ORDER BY number")]  # noqa: S608 - the columns are the line above

    def under(self, key: str) -> Booking | None:
        """The latest under a business key."""
        return next((each for each in reversed(self.rows()) if each.key == key), None)

    def fill_disk(self) -> None:
        """Let the file grow no further: the next commit fails as on a full disk, by SQLite's own limit."""
        self._database.execute("PRAGMA max_page_count = 1")  # Taken as the present size where that is larger.

    def close(self) -> None:
        """Close the file; idempotent."""
        self._database.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
