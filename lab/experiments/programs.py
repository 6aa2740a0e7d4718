"""What the programs of an experiment said, read from the logs in its folder."""

import json
from pathlib import Path
from typing import Any

from lab.report.timeline import read_timeline


def lines(folder: Path, end: str, event: str, **fields: object) -> list[dict[str, Any]]:
    """All that a program said of one kind; ``t`` is when, seconds from the cut.

    Args:
        folder: The run's.
        end: client or server.
        event: The kind.
        fields: What else it must say.
    """
    (cut,) = [one.at for _, one in read_timeline(folder / "timeline.jsonl").entries if one.kind == "cut"]
    texts = (line.split(" ", 2) for line in (folder / f"{end}.log").read_text(encoding="utf-8").splitlines())
    events = [(float(read_at), json.loads(text)) for read_at, _, text in texts if text.startswith("{")]
    return [
        # A program that is not the lab's does not say when; its line was read a little later.
        one | {"t": one.get("at", read_at) - cut}
        for read_at, one in events
        if one["event"] == event and fields.items() <= one.items()
    ]


def said(folder: Path, end: str, event: str, **fields: object) -> list[float]:
    """When a program said this, seconds from the cut."""
    return [one["t"] for one in lines(folder, end, event, **fields)]


def states(folder: Path, end: str = "client") -> list[tuple[float, str]]:
    """The states that an end's socket was seen in after the cut: when, seconds from the cut, and its name."""
    entries = read_timeline(folder / "timeline.jsonl").entries
    return [(t, one.detail["state"]) for t, one in entries if t >= 0 and one.source == end and "state" in one.detail]


def orphans(folder: Path, end: str = "client") -> list[float]:
    """When an end's socket was seen after the cut without a program that holds it, seconds from the cut."""
    entries = read_timeline(folder / "timeline.jsonl").entries
    return [t for t, one in entries if t >= 0 and one.source == end and one.detail.get("orphan") is True]
