"""Many live sessions in one server process: what a session costs, and how late their pongs are."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks.figures import Figure

SESSIONS = 300
SECONDS = 12.0
LATE_S = 0.1
"""A watchdog pings every 0.5 s and gives up after 2 s: a tenth of a second is no part of what it measures."""


@contextmanager
def server() -> Iterator[dict[str, Any]]:
    """The program, and where it listens."""
    ports = ("--port", "0", "--status-port", "0", "--host", "127.0.0.1")
    command = [sys.executable, "-m", "lab.live.server", *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        listening: dict[str, Any] = json.loads(running.stdout.readline())
        # What it says is not read any more; it goes on without.
        running.stdout.close()
        try:
            yield listening
        finally:
            running.terminate()


def status(listening: dict[str, Any]) -> dict[str, Any]:
    """What the server tells of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{listening['status']}/status", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@pytest.mark.parametrize("mode", ["idle", "talk", "speech"])
def test_three_hundred_sessions_at_once_are_served_in_time(mode: str, figures: Callable[[Figure], None]) -> None:
    """On a machine that is busy with other things the figures are the machine's."""
    with server() as listening:
        before = status(listening)
        command = [
            sys.executable,
            "-m",
            "benchmarks.live_load",
            str(listening["ws"]),
            str(SESSIONS),
            mode,
            str(SECONDS),
        ]
        load = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)
        after = status(listening)

    cpu_s = after["process"]["cpu_s"] - before["process"]["cpu_s"]
    each_ms, loop_ms, own_ms = (
        seconds * 1e3 for seconds in (cpu_s / SECONDS / SESSIONS, after["late"]["p99_s"], load["own_late_p99_s"])
    )
    assert (load["ready"], load["ended"], after["defects"]) == (SESSIONS, 0, 0)
    assert load["called"] == (SESSIONS if mode == "talk" else 0)
    figures(
        Figure(
            f"{SESSIONS} live sessions in one server, {mode}: CPU, and the wait for a pong",
            f"{each_ms:.2f} ms/s per session; pong 99% within {load['pong_p99_s'] * 1e3:.3g} ms",
            f"the server's loop 99% within {loop_ms:.3g} ms, the load's {own_ms:.3g} ms",
            f"{cpu_s / SECONDS:.0%} of a processor in all",
            f"99% of pongs within {LATE_S * 1000:.0f} ms",
            load["pong_p99_s"] <= LATE_S,
        )
    )
