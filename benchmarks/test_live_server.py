"""Many live sessions in one server process: what a session costs, and how late their pongs are."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from benchmarks.figures import Figure
from benchmarks.live_crowd import LATE_S, SESSIONS, server, status

SECONDS = 8.0


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
