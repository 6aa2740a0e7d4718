"""Sessions as lines of JSON: results/ID.jsonl, one line each, on the disk as soon as the session is over."""

import dataclasses
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.core.errors import UsageError
from lab.study.judgement import Session
from lab.study.scenario import Quantity

DIGITS = 6


class Results:
    """A folder of results; sessions of many threads may be added.

    Args:
        folder: Made where it does not exist; what is in it stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._alone = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, session: Session) -> None:
        """Write a session down; it survives whatever becomes of this process."""
        line = json.dumps(as_json(session), ensure_ascii=False) + "\n"
        path = self.folder / f"{session.scenario}.jsonl"
        with self._alone, path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Session]:
        """Every session that was written, scenario by scenario; a last line that was cut short is none.

        Raises:
            UsageError: a line is no session.
        """
        return [each for path in sorted(self.folder.glob("*.jsonl")) for each in _sessions(path)]


def as_json(session: Session) -> dict[str, Any]:
    """A session as an object of JSON."""
    plain = {each.name: getattr(session, each.name) for each in dataclasses.fields(session)}
    values = {each.name.lower(): [round(value, DIGITS) for value in seen] for each, seen in session.values.items()}
    return plain | {"values": values, "invalid": list(session.invalid), "again": list(session.again)}


def from_json(written: Mapping[str, Any]) -> Session:
    """The session that an object was made of.

    Raises:
        KeyError: a quantity that there is not.
        TypeError: a field that there is not.
    """
    values = {Quantity[name.upper()]: tuple(map(float, seen)) for name, seen in written["values"].items()}
    fields = {**written, "values": values, "invalid": tuple(written["invalid"]), "again": tuple(written["again"])}
    return Session(**fields)


def _sessions(path: Path) -> list[Session]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = lines[:-1] if lines and not lines[-1].endswith("\n") else lines
    try:
        return [from_json(json.loads(line)) for line in whole]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no file of results: {error}.", fix=f"move {path} away") from error
