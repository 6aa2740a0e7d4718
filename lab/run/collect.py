"""Reads out everything that a run left behind: rules, counters, captures, samples, output."""

import itertools
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Fault, Matched, Placement
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.hole import Dark, Passage, is_nudge, passage
from lab.core.icmp import IcmpMessage
from lab.core.prediction import Cause
from lab.core.retransmission import Classified, classify
from lab.core.segment import Flag, Segment
from lab.core.segment_class import SegmentClass
from lab.pcap import read_packets
from lab.run.fate import announced_expiry, dated_close, narrowed, read_fate
from lab.run.findings import BystanderFinding, EndFinding, Findings
from lab.run.forecast import EndForecast
from lab.run.noticing import event_of, first_error, instant_of, read_noticing
from lab.run.spec import ORPHANED, RunSpec
from lab.run.traffic import read_traffic
from lab.testbed.ports import CaptureSummary, Counters, CutReceipt, Node, Process, Testbed

RETRANSMITTED = "TcpRetransSegs"
COUNTERS = {
    "retransmissions": RETRANSMITTED,
    "keepalive-probes": "TcpExtTCPKeepAlive",
    "window-probes": "TcpExtTCPWinProbe",
}
"""What a capture can show beside the kernel's own count of it."""

NUDGE_TIMEOUT_S = 0.5
"""How long a nudge may take to the router; microseconds, unless the machine is busy. Past it the proofs will fail."""

SETTLED_TRIES = 20
"""Readings until two in a row agree that nothing was resent in between; each takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the run knows when its watch is over; the rest is read here."""

    spec: RunSpec
    testbed: Testbed
    flow: FourTuple
    fault: Fault
    cut: CutReceipt
    healed: CutReceipt | None
    until: float
    """When the watch ended, CLOCK_MONOTONIC."""

    forecasts: Mapping[str, EndForecast]
    before: Mapping[str, Counters]
    """Per node, before any program started."""

    programs: Mapping[str, Process | None]
    bystander: Process
    bystander_port: int
    reconnect: Process | None
    """A client that tried a new connection while the old one was dark."""


@dataclass(frozen=True, slots=True)
class Side:
    """One capture, on CLOCK_MONOTONIC."""

    segments: Sequence[Segment]
    icmp: Sequence[IcmpMessage]


def collect(watched: Watched) -> tuple[Findings, Mapping[str, Sequence[Classified]]]:
    """Stop the capture and bring all witnesses together.

    Returns:
        The findings, and per side the flow's segments with their classes, for the timeline.

    Raises:
        InvalidRun: a capture cannot be read.
    """
    testbed = watched.testbed
    after, counted_at = settled_counters(testbed)
    tracks = {node.name: node.track(watched.flow) for node in (testbed.client, testbed.server)}
    if watched.healed is None:
        nudge(testbed, watched.fault)
    matched, matched_at = settled_matched(testbed, watched.fault)
    summary = testbed.router.stop_capture()
    sides = {name: read_side(path, summary) for name, path in (("left", summary.left), ("right", summary.right))}
    classes = {name: classify(kernel_segments(side), watched.flow) for name, side in sides.items()}
    deltas = {name: counters_moved(watched.before[name], after[name]) for name in after}

    def end(node: Node, direction: Direction) -> EndFinding:
        forecast = watched.forecasts[node.name]
        near = sides["left" if direction is Direction.FORWARD else "right"]
        traffic = read_traffic(
            classes["left" if direction is Direction.FORWARD else "right"],
            direction,
            watched.cut.began_at,
            None if watched.healed is None else watched.healed.began_at,
            counted_at,
        )
        program = watched.programs[node.name]
        reset = _reset_received(near.segments, watched.flow, direction.opposite, watched.cut.began_at)
        user_timeout = forecast.sending.cause is Cause.USER_TIMEOUT or forecast.idle.cause is Cause.USER_TIMEOUT
        fate = read_fate(
            tracks[node.name],
            deltas[node.name],
            watched.cut.began_at,
            user_timeout=user_timeout,
            reset=reset,
            orphan=forecast.state in ORPHANED,
        )
        fate = dated_close(fate, tracks[node.name], traffic.ended_at)
        own = (watched.spec.client if node.name == "client" else watched.spec.server).own
        error_at = _error_at(program, watched.cut.began_at) if own else None
        last_copy_at = traffic.copies[-1].segment.time_s if traffic.copies else None
        announced = None if watched.healed else announced_expiry(tracks[node.name], fate)
        lived = (at for at in (last_copy_at, announced) if at)
        over = (at for at in (error_at, traffic.reset_at) if at)
        fate = narrowed(fate, max(lived, default=None), min(over, default=None))
        pattern = watched.spec.noticed if node.name == "client" else None
        noticing = read_noticing(program, fate, watched.cut.began_at, pattern=pattern, own=own)
        last = tracks[node.name].samples[-1] if tracks[node.name].samples else None
        return EndFinding(
            name=node.name,
            direction=direction,
            forecast=forecast,
            traffic=traffic,
            fate=fate,
            noticing=noticing,
            program_error_at=error_at,
            killed=_killed_from_outside(program, node.name, watched.spec),
            counted=count_sent_again(kernel_segments(near), (node.ipv4, node.ipv6), counted_at),
            counters={what: deltas[node.name].get(counter, 0) for what, counter in COUNTERS.items()},
            late_s=max((late for at, late in tracks[node.name].late if at >= watched.cut.began_at), default=0.0),
            samples=tracks[node.name].samples,
            total_retrans=None if last is None else last.total_retrans,
            seen_until=None if last is None else max(last.at, tracks[node.name].gone_at or last.at),
        )

    findings = Findings(
        client=end(testbed.client, Direction.FORWARD),
        server=end(testbed.server, Direction.RETURN),
        passages=tuple(_passages(sides, watched, matched_at)),
        matched=matched,
        icmp=sum(1 for side in sides.values() for m in side.icmp if _in_the_dark(m.time_s, watched)),
        bystander=_bystander(watched, sides),
        capture=summary,
        cut=watched.cut,
        healed=watched.healed,
        ended_early=_ended_early((s for side in sides.values() for s in kernel_segments(side)), watched),
        watched_until=watched.until,
        counters=deltas,
        reconnected=None if watched.reconnect is None else _connected(watched.reconnect),
    )
    return findings, classes


def settled_counters(testbed: Testbed) -> tuple[dict[str, Counters], float]:
    """Every node's counters at an instant around which nothing was resent, and that instant, CLOCK_MONOTONIC."""
    nodes = (testbed.client, testbed.router, testbed.server)
    for _ in range(SETTLED_TRIES):
        first = {node.name: node.counters() for node in nodes}
        at = time.monotonic()
        second = {node.name: node.counters() for node in nodes}
        if all(first[name].get(c) == second[name].get(c) for name in first for c in COUNTERS.values()):
            return second, at
    raise InvalidRun(f"Counters that stand still for two readings were expected; {SETTLED_TRIES} times they moved.")


def settled_matched(testbed: Testbed, fault: Fault) -> tuple[Matched, float]:
    """What the rules have dropped, and an instant up to which that is all, CLOCK_MONOTONIC."""
    for _ in range(SETTLED_TRIES):
        first = testbed.router.matched(fault)
        at = time.monotonic()
        if testbed.router.matched(fault) == first:
            return first, at
    raise InvalidRun(f"A rule that rests for two readings was expected; {SETTLED_TRIES} times it had matched.")


def nudge(testbed: Testbed, fault: Fault) -> None:
    """Send one old acknowledgment into the hole, each way that is cut, and wait until the rules have had it.

    An idle flow proves nothing by itself: a rule for the wrong port would look the same. And a busy one proves nothing
    about the time after its last segment. Only while the hole is open, and only where the router makes it: a drop in
    the sender's own OUTPUT is told to whoever sends.
    """
    if fault.placement is not Placement.ROUTER:
        return
    before = testbed.router.matched(fault)
    for direction in fault.direction.directions:
        node = testbed.client if direction is Direction.FORWARD else testbed.server
        node.nudge(*fault.flow.ends(direction))
    deadline = time.monotonic() + NUDGE_TIMEOUT_S
    while time.monotonic() < deadline:
        now = testbed.router.matched(fault)
        if all(now.of(direction) > before.of(direction) for direction in fault.direction.directions):
            return


def read_side(path: Path, summary: CaptureSummary) -> Side:
    """A capture's segments and ICMP messages, brought onto CLOCK_MONOTONIC.

    Raises:
        InvalidRun: it cannot be read to its end.
    """
    offset = summary.clocks[0].offset
    segments: list[Segment] = []
    icmp: list[IcmpMessage] = []
    try:
        for packet in read_packets(path):
            if isinstance(packet, Segment):
                segments.append(packet._replace(time_s=packet.time_s - offset))
            else:
                icmp.append(replace(packet, time_s=packet.time_s - offset))
    except UsageError as error:
        raise InvalidRun(f"The lab's own capture cannot be read: {error.message}") from error
    return Side(segments, icmp)


def counters_moved(before: Counters, after: Counters) -> dict[str, int]:
    """How far each counter moved; those that stood still are left out."""
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def kernel_segments(side: Side) -> list[Segment]:
    """What the kernels sent: everything but the lab's own nudges."""
    return [segment for segment in side.segments if not is_nudge(segment)]


def count_sent_again(segments: Sequence[Segment], addresses: tuple[str, ...], until: float) -> dict[str, int]:
    """What a node put on the wire again, over all its flows, up to an instant; keys of ``COUNTERS``."""
    counts = dict.fromkeys(COUNTERS, 0)
    for flow_segments in _by_flow(segments).values():
        for c in classify(flow_segments):
            if c.segment.time_s > until or c.segment.source.address not in addresses:
                continue
            if c.segment_class.is_copy:
                counts["retransmissions"] += 1
            elif c.segment_class is SegmentClass.KEEPALIVE_PROBE:
                counts["keepalive-probes"] += 1
            elif c.segment_class is SegmentClass.WINDOW_PROBE:
                counts["window-probes"] += 1
    return counts


def _by_flow(segments: Sequence[Segment]) -> dict[frozenset[Endpoint], list[Segment]]:
    flows: dict[frozenset[Endpoint], list[Segment]] = {}
    for segment in segments:
        flows.setdefault(frozenset((segment.source, segment.destination)), []).append(segment)
    return flows


def _passages(sides: Mapping[str, Side], watched: Watched, until: float) -> Iterator[Passage]:
    """Every direction that was cut; who was on the way when the rules were read for the last time is passed over."""
    dark = Dark(
        began_s=watched.cut.began_at,
        done_s=watched.cut.done_at,
        healed_s=float("inf") if watched.healed is None else watched.healed.began_at,
    )
    for direction in watched.fault.direction.directions:
        near, far = ("left", "right") if direction is Direction.FORWARD else ("right", "left")
        seen = passage(sides[near].segments, sides[far].segments, watched.flow, direction, dark, watched.fault.scope)
        yield replace(seen, missing=_up_to(until, seen.missing), strangers=_up_to(until, seen.strangers))


def _up_to(until: float, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(segment for segment in segments if segment.time_s <= until)


def _ended_early(segments: Iterable[Segment], watched: Watched) -> int | None:
    if watched.spec.closes:
        return None
    return sum(
        1
        for s in segments
        if s.flags & (Flag.FIN | Flag.RST)
        and s.time_s < watched.cut.done_at
        and watched.flow.direction_of(s.source, s.destination) is not None
    )


def _in_the_dark(time_s: float, watched: Watched) -> bool:
    return watched.cut.began_at <= time_s and (watched.healed is None or time_s < watched.healed.began_at)


def _reset_received(segments: Sequence[Segment], flow: FourTuple, direction: Direction, since: float) -> bool:
    """Whether a RST of the flow came out of the router towards this end."""
    ends = flow.ends(direction)
    return any(s.flags & Flag.RST and (s.source, s.destination) == ends and s.time_s >= since for s in segments)


def _error_at(process: Process | None, since: float) -> float | None:
    if process is None:
        return None
    error = first_error(line for line in process.lines if line.at >= since)
    return None if error is None else instant_of(error)


def _killed_from_outside(process: Process | None, node: str, spec: RunSpec) -> bool:
    asked = any(action.node == node and action.signal == signal.SIGKILL for action in spec.actions)
    return process is not None and process.returncode == -signal.SIGKILL and not asked


def _connected(client: Process) -> bool:
    events = map(event_of, client.lines)
    return any(e is not None and e.get("event") == "connected" for e in events)


def _bystander(watched: Watched, sides: Mapping[str, Side]) -> BystanderFinding:
    events = [e for e in map(event_of, watched.bystander.lines) if e is not None]
    answers = [instant_of(e) for e in events if e.get("event") == "received"]
    told = any(e.get("event") in ("error", "eof", "closed") for e in events)
    pauses = itertools.pairwise([*answers, watched.until])
    since = [after - before for before, after in pauses if after >= watched.cut.began_at]
    server = watched.testbed.server
    its = {Endpoint(address, watched.bystander_port) for address in (server.ipv4, server.ipv6)}
    lost = 0
    for side in sides.values():
        mine = [s for s in side.segments if its & {s.source, s.destination}]
        lost += sum(1 for segments in _by_flow(mine).values() for c in classify(segments) if c.segment_class.is_copy)
    alive = bool(answers) and not told and watched.bystander.returncode is None
    return BystanderFinding(alive=alive, lost=lost, longest_gap_s=max(since, default=float("inf")))
