"""Question: when does a close that a client queued on a dark connection leave, once the path is back?

Topology::

    client ---- router --x-- server        the lab's hole
    client --x-- router ---- server        the client's own OUTPUT, as in the published study of live sessions

A client pings every half second into the hole, takes the link for lost after two seconds and queues a close; the hole
is healed at 4.5 s (``slow``: at 30 s). The octets are the lab's own lines, since a kernel does not look at them: four
pings and a close. Either the close is the last that is written, or it is written (anew) when the path is back.

Prediction: in the router, the first ping's ladder (a tail-loss probe, then timeouts that double) goes on, and all
behind it waits for its next copy: after 4.5 s of silence that is 6.6 to 6.9 s after the ping, after 30 s it is 53 to
55 s. A close written when the path is back waits just as long: after a timeout the congestion window is one segment,
and that one is in flight. In the own OUTPUT nothing is in flight, ever. The window-probe timer runs from the first ping
on, with ``RTO * (2^n - 1)``: what was queued leaves with the probe at 6.3 s (52 s). But every write tries anew, so a
close written when the path is back leaves at once and takes all with it. The study, whose hole was in INPUT and OUTPUT,
saw its close echoed 14 ms after it was written; behind a real loss a close on the old connection has to wait.

Look at: ``left.pcapng`` after the heal; ``observation.client.copy_times_s``; ``client`` in ``timeline.jsonl``.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.fault import Cut, Placement
from lab.core.flow import Endpoint
from lab.core.kernel import LINUX_DEFAULTS
from lab.core.segment import Flag, Segment
from lab.core.socket import Timer
from lab.core.timerwheel import granularity
from lab.experiments.common import (
    LINUX,
    PROMPT_S,
    both_families,
    invalid_by_design,
    next_copy,
    one_send,
    probe_timer,
    within,
)
from lab.pcap import read_segments
from lab.report.record import Outcome, Record
from lab.report.timeline import read_timeline
from lab.run.spec import Action, RunSpec

PINGS_S = (0.05, 0.55, 1.05, 1.55)
"""The study's client pings every 0.5 s."""

DETECTED_S = 2.05
"""Its rule: lost after 2.0 s without a frame or a pong."""

BACK_S, LONG_BACK_S = 4.5, 30.0
"""When the path is back: between two steps of both ladders, far from either; and the study's B3."""

REACTION_S = 0.3
"""From the heal to the close that is written because of it."""

LINE = len(b"line 1\n")
"""Octets that the client writes at a time."""


def pinging(close_s: float, *, back_s: float = BACK_S, placement: Placement = Placement.ROUTER) -> RunSpec:
    """Four pings and a close into the dark, healed."""
    writes = tuple(Action(at_s, "client", "send") for at_s in (*PINGS_S, close_s))
    return one_send(
        name=f"close-{placement.value}",
        profile=LINUX,
        direction=Cut.FORWARD,
        placement=placement,
        actions=writes,
        heal_after_s=back_s,
        watch_s=2 * back_s + 3,
    )


QUEUED = pinging(DETECTED_S)
WRITTEN_LATER = pinging(BACK_S + REACTION_S)
LONG_QUEUED = pinging(DETECTED_S, back_s=LONG_BACK_S)
LONG_WRITTEN_LATER = pinging(LONG_BACK_S + REACTION_S, back_s=LONG_BACK_S)


def cases(*, later: bool) -> list[Any]:
    """Both silences over both families; the long one takes a minute."""
    short, long = (WRITTEN_LATER, LONG_WRITTEN_LATER) if later else (QUEUED, LONG_QUEUED)
    return [
        *both_families(short, f"after-{BACK_S:g}s"),
        *(pytest.param(*one.values, id=one.id, marks=pytest.mark.slow) for one in both_families(long, "after-30s")),
    ]


def in_own_output(params: list[Any]) -> list[Any]:
    """The same with the hole in the client's own OUTPUT."""
    return [
        pytest.param(replace(one.values[0], placement=Placement.OWN_OUTPUT), id=one.id, marks=one.marks)
        for one in params
    ]


@pytest.mark.parametrize("spec", cases(later=False))
def test_behind_a_router_the_queued_close_waits_for_the_next_copy(spec: RunSpec, record: Record, folder: Path) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.counters["client"]["TcpRetransSegs"] == record.observation.client.copies
    ping, close = first_after_heal(record, folder), close_after_heal(record, folder)
    assert close - ping < PROMPT_S, "what waited leaves one round trip after the copy"
    assert within(ping, next_copy(record)), spec.placement.value


@pytest.mark.parametrize("spec", cases(later=True))
def test_behind_a_router_a_close_written_when_the_path_is_back_waits_too(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert record.outcome is Outcome.CONFIRMED, record.reason
    close = close_after_heal(record, folder)
    assert close > (spec.heal_after_s or 0) + REACTION_S + 1.0, "it had to wait"
    assert within(close - PROMPT_S / 2, next_copy(record), PROMPT_S / 2)


@pytest.mark.parametrize("spec", in_own_output(cases(later=False)))
def test_in_the_own_output_the_queued_close_waits_for_the_next_probe(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    """INVALID by design, as every run whose rule no capture sees; the wire after the heal is what is asked for."""
    assert_only_probing(record, folder)
    probes = [one for one in probe_windows(record, folder) if one[1] > (record.fault.healed_s or 0)]
    ping, close = first_after_heal(record, folder), close_after_heal(record, folder)
    assert ping == close, "one segment: none of it had ever been sent"
    assert within(close, probes[0]), spec.placement.value


@pytest.mark.parametrize("spec", in_own_output(cases(later=True)))
def test_in_the_own_output_a_close_written_when_the_path_is_back_leaves_at_once(
    spec: RunSpec, record: Record, folder: Path
) -> None:
    assert_only_probing(record, folder)
    written = (spec.heal_after_s or 0) + REACTION_S
    close = close_after_heal(record, folder)
    assert written <= close <= written + PROMPT_S
    assert first_after_heal(record, folder) == close, "and takes with it what was queued before"


def assert_only_probing(record: Record, folder: Path) -> None:
    """Nothing left the client in the dark, and each write and each probe met the rule."""
    assert invalid_by_design(record), record.reason
    assert record.observation.client.copies == 0
    assert record.counters["client"].get("TcpRetransSegs", 0) == 0
    healed = record.fault.healed_s or 0
    writes = [at for at in actions(folder) if at < healed]
    least, most = (sum(probe[end] < healed for probe in probe_windows(record, folder)) for end in (1, 0))
    assert len(writes) + least <= (record.fault.matched.forward or 0) <= len(writes) + most


def probe_windows(record: Record, folder: Path) -> list[tuple[float, float]]:
    """When each window probe was predicted to leave, counted from the first write that failed."""
    hz, timer = record.settings.hz or LINUX_DEFAULTS.hz, probe_timer(record)
    low = min(actions(folder))
    # The write was told to the client then, and had failed when its socket was first seen to probe.
    high = min(at for at, armed in client_timers(folder) if armed is Timer.PROBE)
    windows = []
    for probes in range(9):
        wait = timer.wait(probes, None)
        low += (wait - 1) / hz
        high += (wait + granularity(wait) + 2) / hz
        windows.append((low, high))
    return windows


def first_after_heal(record: Record, folder: Path) -> float:
    """When the first data left the client after the heal, seconds from the cut."""
    return min(at for at, _ in data_after_heal(record, folder))


def close_after_heal(record: Record, folder: Path) -> float:
    """When the last octet that was written left the client for the first time after the heal."""
    sent = data_after_heal(record, folder)
    end = max(segment.seq + segment.length for _, segment in sent)
    return min(at for at, segment in sent if segment.seq + segment.length == end)


def data_after_heal(record: Record, folder: Path) -> list[tuple[float, Segment]]:
    """The client's segments with data after the heal, and when they left, seconds from the cut."""
    host, _, port = (record.flow.client or "").rpartition(":")
    client, cut, healed = Endpoint(host.strip("[]"), int(port)), record.fault.cut_at or 0, record.fault.healed_s or 0
    found = [(s.time_s - cut, s) for s in read_segments(folder / "left.pcapng") if s.source == client and s.length]
    sent = [(at, segment) for at, segment in found if at > healed and not segment.flags & Flag.RST]
    assert sum(s.length for _, s in sent) == LINE * len(actions(folder)), "each octet once, after the heal"
    return sent


def actions(folder: Path) -> list[float]:
    """When the client was told to write, seconds from the cut."""
    return [at for at, one in read_timeline(folder / "timeline.jsonl").entries if one.kind == "action"]


def client_timers(folder: Path) -> list[tuple[float, Timer]]:
    """What the client's socket was waiting for at each look, seconds from the cut."""
    entries = read_timeline(folder / "timeline.jsonl").entries
    return [
        (at, Timer[one.detail["timer"]])
        for at, one in entries
        if one.kind == "socket-sample" and one.source == "client" and at > 0
    ]
