"""The figures of one run of the benchmarks, and the Markdown table that holds them."""

import os
import platform
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_HEAD = ("what", "lab", "against", "ratio", "goal", "command")


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: two costs that were measured in the same run."""

    what: str
    ours: str
    """What the lab took."""

    other: str
    """What it is held against."""

    ratio: str
    """How the two compare."""

    goal: str = ""
    met: bool | None = None
    """Whether the goal was met; None where there is none."""

    command: str = ""
    """How to measure it alone; filled in by the ``figures`` fixture."""

    def cells(self) -> tuple[str, ...]:
        """The row's cells, in the order of the head."""
        verdict = {True: f"{self.goal}: met", False: f"{self.goal}: **not met**", None: self.goal or "none set"}[
            self.met
        ]
        return self.what, self.ours, self.other, self.ratio, verdict, f"`{self.command}`"


def milliseconds(durations: Sequence[float]) -> str:
    """The median of durations in seconds, with the middle half beside it."""
    low, middle, high = (quartile * 1000 for quartile in statistics.quantiles(durations, n=4))
    return f"{_plain(middle)} ms ({_plain(low)} to {_plain(high)})"


def _plain(number: float) -> str:
    """Three digits, and none of a thousand's left out."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """How many times as long theirs took, by the medians."""
    return statistics.median(theirs) / statistics.median(ours)


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *(figure.cells() for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def machine() -> str:
    """The machine in general terms, and how busy it was when asked."""
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    size = f"{int(memory[1]) / 2**20:.0f} GiB of memory, " if memory else ""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {size}Linux {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
