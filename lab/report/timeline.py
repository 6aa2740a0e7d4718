"""``timeline.jsonl``: every observation of a run, one JSON object a line, in the order in which it became known.

A line has ``at`` (CLOCK_MONOTONIC seconds), ``t_s`` (seconds from the cut, null where it was written before the cut),
``source``, ``kind`` and ``detail``. Programs report as it happens and captures are read after the run, so readers sort.

Kinds that the report draws: ``segment`` (source router-left or router-right; detail: direction, class, seq, length),
``cut`` and ``heal``. Other kinds are welcome and left alone.
"""

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.core.timeline import Observation, relative
from lab.report.folder import write_whole, writing


class TimelineWriter:
    """Appends observations, each flushed as it comes, so that a run that dies leaves all it knew. Thread-safe.

    Args:
        path: The file; made where it does not exist.

    Raises:
        EnvironmentNotReady: it cannot be written to, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._anchor: float | None = None
        with writing(path.parent):
            self._file = path.open("a", encoding="utf-8")

    def anchor(self, at: float) -> None:
        """From here on times are also given from this instant, the cut (CLOCK_MONOTONIC seconds)."""
        self._anchor = at

    def add(self, observation: Observation) -> None:
        """Append one line.

        Raises:
            EnvironmentNotReady: the disk is full.
        """
        with self._lock, writing(self._path.parent):
            self._file.write(_line(observation, self._anchor))
            self._file.flush()

    def close(self) -> None:
        """Close the file, its lines now sorted by time and all counted from the anchor, where there is one."""
        with self._lock:
            if self._file.closed:
                return
            with writing(self._path.parent):
                self._file.close()
            if self._anchor is not None:
                entries = read_timeline(self._path, anchor=self._anchor).entries
                write_whole(self._path, "".join(_line(each, self._anchor) for _, each in entries).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline that was read back."""

    entries: tuple[tuple[float, Observation], ...]
    """Seconds from the cut and the observation, in order; empty where the run never got to the cut."""

    unreadable: int
    """Lines that are no observation: a run that was killed leaves at most one, its last."""


def read_timeline(path: Path, *, anchor: float | None = None) -> Timeline:
    """The observations of a file, none where it does not exist or cannot be read.

    Args:
        path: The file.
        anchor: The instant to count from, CLOCK_MONOTONIC seconds; where None, the one that the file was written with.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return Timeline((), 0)
    parsed = [_parse(line) for line in lines if line.strip()]
    known = [pair for pair in parsed if pair is not None]
    # One dated line dates them all: both of its times are on the same clock.
    if anchor is None:
        anchor = next((observation.at - t for t, observation in known if t is not None), None)
    if anchor is None:
        anchor = next((observation.at for _, observation in known if observation.kind == "cut"), None)
    if anchor is None:
        return Timeline((), len(parsed) - len(known))
    return Timeline(tuple(relative([observation for _, observation in known], anchor)), len(parsed) - len(known))


def _line(observation: Observation, anchor: float | None) -> str:
    t_s = None if anchor is None else round(observation.at - anchor, 6)
    entry = {"at": observation.at, "t_s": t_s, "source": observation.source, "kind": observation.kind}
    return json.dumps({**entry, "detail": dict(observation.detail)}, ensure_ascii=False, allow_nan=False) + "\n"


def _parse(line: bytes) -> tuple[float | None, Observation] | None:
    try:
        data = json.loads(line)
        at, t_s, source, kind, detail = (data[key] for key in ("at", "t_s", "source", "kind", "detail"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not _finite(at) or not (t_s is None or _finite(t_s)) or not isinstance(detail, Mapping):
        return None
    return t_s, Observation(float(at), str(source), str(kind), detail)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
