"""Sessions as lines of JSON: results/ID.jsonl, one line each, on the disk as soon as the session is over."""

import contextlib
import dataclasses
import json
import math
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.core.errors import UsageError
from lab.report.folder import writing
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
        """Write a session down; it survives whatever becomes of this process.

        Raises:
            EnvironmentNotReady: the disk is full, or cannot be written to; what was there is whole.
        """
        line = json.dumps(as_json(session), ensure_ascii=False) + "\n"
        path = self.folder / f"{session.scenario}.jsonl"
        with self._alone, writing(path):
            _append(path, line.encode("utf-8", "backslashreplace"))

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


def from_json(written: Any) -> Session:
    """The session that an object was made of.

    Raises:
        KeyError: a field or a quantity that there is not.
        TypeError: no object, or a field of another type.
        ValueError: a number that is none.
    """
    wrong = [name for name, fits in _FITS.items() if name in written and not fits(written[name])]
    if wrong:
        raise TypeError(f"{wrong[0]} cannot be {written[wrong[0]]!r}")
    values = {Quantity[name.upper()]: tuple(map(_finite, seen)) for name, seen in written["values"].items()}
    fields = {**written, "values": values, "invalid": tuple(written["invalid"]), "again": tuple(written["again"])}
    return Session(**fields)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_text_or_none(value: Any) -> bool:
    return value is None or _is_text(value)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "scenario": _is_text,
    "number": lambda value: type(value) is int and value >= 0,
    "real": _is_truth,
    "values": lambda value: isinstance(value, dict) and all(isinstance(each, list) for each in value.values()),
    "invalid": _are_texts,
    "stuck": _is_text_or_none,
    "disturbed": _is_truth,
    "defect": _is_text_or_none,
    "refuted": _is_text_or_none,
    "again": _are_texts,
    "took_s": lambda value: type(value) in (int, float),
    "folder": _is_text,
}
"""What each field has to be; a verdict must not hang on what another program made of the file."""


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _append(path: Path, line: bytes) -> None:
    """Add a line that is on the disk afterwards, or nothing at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        before, left = os.fstat(descriptor).st_size, line
        try:
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def _sessions(path: Path) -> list[Session]:
    try:
        # Not splitlines: what a program said may hold ends of lines that are none in JSON, such as U+2028.
        *whole, _cut_short = path.read_text(encoding="utf-8").split("\n")
        return [from_json(json.loads(line)) for line in whole]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is no file of results: {error}.", fix=f"move {path} away") from error
