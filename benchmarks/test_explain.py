"""``lab explain`` on a million segments against tshark with its TCP analysis, one after the other on the same file.

Takes one to two minutes, nearly all of it tshark's.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.figures import Figure
from benchmarks.synthetic import write

SEGMENTS = 1_000_000
GOAL = 3
"""How many times faster than tshark."""

MEMORY = 500_000_000
"""Octets that may be resident at most."""


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    wall_s: float
    cpu_s: float
    resident: int
    """Octets at the peak."""

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s ({self.cpu_s:.1f} s CPU, {self.resident / 1e6:.0f} MB)"


def test_a_million_segments_three_times_as_fast_as_tshark(tmp_path: Path, figures: Callable[[Figure], None]) -> None:
    """Both find the copies that the generator made, and no others."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    capture = tmp_path / "million.pcap"
    losses = write(capture, SEGMENTS)
    fields = ("frame.number", "tcp.stream", "tcp.seq", "tcp.len", "tcp.analysis.retransmission")
    theirs_argv = [tshark, "-r", str(capture), "-T", "fields", *(word for field in fields for word in ("-e", field))]

    ours = measure([sys.executable, "-m", "lab", "explain", "--json", str(capture)], tmp_path / "ours.json")
    theirs = measure(theirs_argv, tmp_path / "theirs.tsv")

    flows = json.loads((tmp_path / "ours.json").read_text())["flows"]
    marked = sum(bool(row.split("\t")[-1]) for row in (tmp_path / "theirs.tsv").read_text().splitlines())
    assert sum(len(flow["copies"]) for flow in flows) == marked == losses.fast + losses.timeouts
    # Both run on one core: processor time is what a busy machine does not stretch.
    ratio = theirs.cpu_s / ours.cpu_s
    figures(
        Figure(
            f"`lab explain` on {SEGMENTS:,} segments",
            str(ours),
            f"`tshark -T fields` with TCP analysis: {theirs}",
            f"{ratio:.1f} times as fast by processor time ({theirs.wall_s / ours.wall_s:.1f} by the clock)",
            f"at least {GOAL} times, under {MEMORY / 1e6:.0f} MB",
            ratio >= GOAL and ours.resident < MEMORY,
        )
    )
    assert ratio >= GOAL
    assert ours.resident < MEMORY


def measure(argv: list[str], output: Path) -> Cost:
    """Run a command with its output in a file, and say what it cost, children included."""
    began = time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
