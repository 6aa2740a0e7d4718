"""Question: when does a live session's server learn of the close that a client queued on its dark connection?

Topology::

    assistant ---- router --x-- session server        the lab's hole
    assistant --x-- router ---- session server        the assistant's own OUTPUT, as in the published study

The assistant pings every half second, takes its link for lost after two seconds, and stops pinging. It queues a close
at once, or writes one three seconds later, when the path is back: the hole is healed at 4.5 s.

Prediction: what ``test_live_placement.py`` shows with plain lines, here with the session that hangs on it. In the
router both wait for the next copy of the first lost ping, 6.6 to 6.9 s after it. In the own OUTPUT the queued close
waits for the next probe, at ``RTO * (2^n - 1)``; the one that is written when the path is back comes at once. The
server lets go of the session when the close frame comes, never before.

Look at: ``detach`` in ``server.log``, ``close_old`` in ``client.log``; ``left.pcapng`` after the heal.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.fault import Cut, Placement
from lab.core.timerwheel import granularity
from lab.experiments.common import LINUX, PROMPT_S, both_families, heard, invalid_by_design, next_copy, probe_timer
from lab.experiments.programs import said
from lab.report.record import Outcome, Record
from lab.report.timeline import read_timeline
from lab.run.spec import Program, RunSpec
from lab.run.trigger import LineTrigger
from lab.study.commands import PORT, Modules

BACK_S = 4.5
REQUEST = "Book me the 3pm slot tomorrow, please."


def session(*after_loss: dict[str, object]) -> RunSpec:
    """A booking whose connection goes dark one second after the call, and comes back."""
    script = [
        {"do": "type", "text": REQUEST},
        {"do": "await", "event": "tool_call", "plus": 1.0},
        {"do": "mark", "name": "cut"},
        {"do": "await", "event": "lost"},
        *after_loss,
        {"do": "watch", "for": 1.0},
        {"do": "end"},
    ]
    return RunSpec(
        name="live-close",
        server=Program(("--port", str(PORT)), "lab.live.server"),
        client=Program(("--url", f"ws://server:{PORT}", "--script", json.dumps(script)), "lab.live.client"),
        port=PORT,
        profile=LINUX,
        direction=Cut.FORWARD,
        writes_on=False,  # after the first timeout, which comes before the second ping, the window is shut
        preload=Modules().preload,
        cut_when=LineTrigger("client", '"event": "mark"'),
        heal_after_s=BACK_S,
        end_when=LineTrigger("client", '"event": "done"'),
        watch_s=30.0,
    )


QUEUED = session({"do": "close-old"}, {"do": "await", "event": "closed"})
WHEN_BACK = session({"do": "watch", "for": 3.0}, {"do": "close-old"}, {"do": "await", "event": "closed"})


def own_output(spec: RunSpec) -> list[Any]:
    """The same with the hole in the assistant's own OUTPUT, over both families."""
    return both_families(replace(spec, placement=Placement.OWN_OUTPUT))


@pytest.mark.parametrize("spec", [*both_families(QUEUED, "queued"), *both_families(WHEN_BACK, "when-back")])
def test_behind_a_router_it_comes_with_the_next_copy(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert heard(detached(folder), next_copy(record)), spec.client.argv


@pytest.mark.parametrize("spec", own_output(QUEUED))
def test_in_the_own_output_a_queued_close_comes_with_the_next_probe(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    """INVALID by design, as every run whose rule no capture sees."""
    assert invalid_by_design(record), (spec.placement, record.reason)
    assert record.observation.client.copies == 0
    assert heard(detached(folder), next_probe(record, folder))


@pytest.mark.parametrize("spec", own_output(WHEN_BACK))
def test_in_the_own_output_a_close_written_when_the_path_is_back_comes_at_once(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    """The same."""
    assert invalid_by_design(record), (spec.placement, record.reason)
    assert record.observation.client.copies == 0
    (written,) = said(folder, "client", "close_old")
    assert written - (record.fault.healed_s or 0) > 0
    assert 0 < detached(folder) - written <= PROMPT_S


def detached(folder: Path) -> float:
    """When the server had the close frame of the connection that was lost, seconds from the cut."""
    (at,) = said(folder, "server", "detach", connection=1, how="close frame")
    return at


def next_probe(record: Record, folder: Path) -> tuple[float, float]:
    """When the first probe after the heal was predicted, from what the kernel announced of one of the first.

    On a busy machine the very first one may have left before the next look; the back-off tells which one it was.
    """
    timer, hz = probe_timer(record), record.settings.hz or 250
    samples = [(t, one.detail) for t, one in read_timeline(folder / "timeline.jsonl").entries if t > 0]
    first, sent = next(
        (t + detail["expires_s"], detail["backoff"])
        for t, detail in samples
        if detail.get("timer") == "PROBE" and detail["expires_s"]
    )
    low = high = first
    for probes in range(1 + sent, 9):
        if high > (record.fault.healed_s or 0):
            break
        wait = timer.wait(probes, None)
        low += (wait - 1) / hz
        high += (wait + granularity(wait) + 2) / hz
    return low, high
