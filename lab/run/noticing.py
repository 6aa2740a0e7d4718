"""When and how one end's program showed that it knew, read from its output and its end."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.run.fate import KernelFate
from lab.testbed.ports import Line, Process


@dataclass(frozen=True, slots=True)
class Noticing:
    """When and how a program showed that it knew."""

    at: float | None
    by: str | None
    """output, close, exit or error."""

    errno: str | None
    """Name of the first error that one of the lab's own programs was given."""


def read_noticing(
    process: Process | None, fate: KernelFate, cut_at: float, *, pattern: str | None, own: bool
) -> Noticing:
    """The program's end of the story.

    Args:
        process: The end's program.
        fate: The kernel's.
        cut_at: CLOCK_MONOTONIC.
        pattern: What a line of the output must match; then nothing else counts.
        own: Whether it is a program of the lab's own, which prints its errors as JSON lines.
    """
    if process is None:
        return Noticing(None, None, None)
    lines = [line for line in process.lines if line.at >= cut_at]
    error = (
        next((e for e in map(event_of, lines) if e is not None and e.get("event") == "error"), None) if own else None
    )
    errno = None if error is None else str(error.get("errno"))
    if pattern is not None:
        found = next((line.at for line in lines if re.search(pattern, line.text)), None)
        return Noticing(found, None if found is None else "output", errno)
    signs: list[tuple[float, str]] = []
    if fate.closed_at is not None and (fate.gone_at is None or fate.closed_at < fate.gone_at):
        signs.append((fate.closed_at, "close"))
    if error is not None:
        signs.append((instant_of(error), "error"))
    if process.exited_at is not None and process.exited_at >= cut_at:
        signs.append((process.exited_at, "exit"))
    at, by = min(signs, default=(None, None))
    return Noticing(at, by, errno)


def has_told(process: Process | None, cut_at: float, *, pattern: str | None, own: bool) -> bool:
    """Whether nothing more need be waited for: the program has shown what it makes of its connection's end.

    Args:
        process: The end's program.
        cut_at: CLOCK_MONOTONIC; what was printed before tells nothing.
        pattern: What a line of the output must match.
        own: Whether it is a program of the lab's own.
    """
    if process is None or process.returncode is not None:
        return True
    lines = [line for line in process.lines if line.at >= cut_at]
    if pattern is not None:
        return any(re.search(pattern, line.text) for line in lines)
    return own and any(e is not None and e.get("event") in ("error", "closed") for e in map(event_of, lines))


def event_of(line: Line) -> Mapping[str, object] | None:
    """The JSON object that a program of the lab's own printed, or None for any other line."""
    try:
        event = json.loads(line.text)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def first_event(name: str, lines: Iterable[Line]) -> Mapping[str, object] | None:
    """The first event of this name that a program of the lab's own reports in these lines."""
    return next((e for e in map(event_of, lines) if e is not None and e.get("event") == name), None)


def instant_of(event: Mapping[str, object]) -> float:
    """When the event happened, CLOCK_MONOTONIC."""
    return float(str(event["at"]))
