"""What one end's kernel and program did: wire, samples, counters and output brought together."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lab.core.flow import Direction, FourTuple
from lab.core.prediction import Cause
from lab.core.retransmission import Classified
from lab.core.segment import Flag, Segment
from lab.run.fate import KernelFate, announced_expiry, dated_close, narrowed, orphaned, read_fate
from lab.run.findings import EndFinding, FarFinding
from lab.run.forecast import EndForecast
from lab.run.noticing import first_event, instant_of, read_noticing
from lab.run.orphan import read_orphan
from lab.run.sides import COUNTERS, Side, count_sent_again, kernel_segments
from lab.run.spec import ORPHANED, Program, RunSpec
from lab.run.traffic import Traffic, read_traffic
from lab.run.watched import Watched
from lab.testbed.ports import Node, Process, SocketTrack

RESET_WITHIN_S = 0.001
"""From a RST at the tap to the end of the socket behind it."""


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read out at the end of a run, of both ends."""

    tracks: Mapping[str, SocketTrack]
    """Per node, the flow's socket."""

    deltas: Mapping[str, Mapping[str, int]]
    """Per node, how far each counter moved."""

    counted_at: float
    """When the counters were read, CLOCK_MONOTONIC."""

    sides: Mapping[str, Side]
    """Per side of the router, left and right, its capture."""

    classes: Mapping[str, Sequence[Classified]]
    """Per side, the flow's segments."""


def read_end(node: Node, direction: Direction, watched: Watched, read: Readings) -> EndFinding:
    """What one end did.

    Args:
        node: The end's.
        direction: The way that it sends in.
        watched: The run.
        read: What it left behind.
    """
    near = "left" if direction is Direction.FORWARD else "right"
    cut_at, track, program = watched.cut.began_at, read.tracks[node.name], watched.programs[node.name]
    started = watched.spec.client if node.name == "client" else watched.spec.server
    own = started is not None and started.own
    healed_at = None if watched.healed is None else watched.healed.began_at
    traffic = read_traffic(read.classes[near], direction, cut_at, healed_at, read.counted_at)
    reset = _reset_received(read.sides[near].segments, watched.flow, direction.opposite, cut_at)
    error_at = _instant_of("error", program, cut_at) if own else None
    told_at = None if error_at is not None else traffic.fin_at
    if _tells_apart(started) and told_at is None and error_at is None and track.samples:
        # Behind data that is lost a FIN waits and does not leave: only the program can tell then.
        told_at = _instant_of("closed", program, track.samples[-1].at)
    forecast, delta = watched.forecasts[node.name], read.deltas[node.name]
    named = forecast.state in ORPHANED
    fate = _fate(track, delta, watched, forecast, traffic, error_at, told_at, reset=reset, as_closed=named)
    orphan = None
    if not named and fate.closed_at is not None:
        closed = _fate(track, delta, watched, forecast, traffic, error_at, told_at, reset=reset, as_closed=True)
        seen = any(sample.at >= cut_at and orphaned(sample) for sample in track.samples)
        if seen or closed.gone_at is not None:
            orphan = read_orphan(closed, track, watched, forecast, traffic)
    pattern = watched.spec.noticed if node.name == "client" else None
    last = track.samples[-1] if track.samples else None
    return EndFinding(
        name=node.name,
        direction=direction,
        forecast=forecast,
        traffic=traffic,
        fate=fate,
        orphan=orphan,
        noticing=read_noticing(program, fate, cut_at, pattern=pattern, own=own),
        program_error_at=error_at,
        killed=_killed_from_outside(program, node.name, watched.spec),
        counted=count_sent_again(kernel_segments(read.sides[near]), (node.ipv4, node.ipv6), read.counted_at),
        counters={what: delta.get(counter, 0) for what, counter in COUNTERS.items()},
        late_s=max((late for at, late in track.late if at >= cut_at), default=0.0),
        samples=track.samples,
        seen_until=None if last is None else max(last.at, track.gone_at or last.at),
    )


def read_far(watched: Watched, read: Readings, translations: Mapping[FourTuple, FourTuple]) -> FarFinding:
    """What an outside server showed: its segments on the uplink side of the router, and nothing else.

    Args:
        watched: The run.
        read: What it left behind; its captures have the client's names for both ends.
        translations: Connections out by the uplink, at the end.
    """
    cut_at, flow = watched.cut.began_at, watched.flow
    healed_at = None if watched.healed is None else watched.healed.began_at
    translated = translations.get(flow)
    passed = {
        direction: sum(1 for c in read.classes[far] if c.direction is direction and c.segment.time_s < cut_at)
        for direction, far in ((Direction.FORWARD, "right"), (Direction.RETURN, "left"))
    }
    return FarFinding(
        translated=translated,
        steady=translated is not None and watched.translations.get(flow) == translated,
        passed=passed,
        traffic=read_traffic(read.classes["right"], Direction.RETURN, cut_at, healed_at, read.counted_at),
    )


def _fate(
    track: SocketTrack,
    delta: Mapping[str, int],
    watched: Watched,
    forecast: EndForecast,
    traffic: Traffic,
    error_at: float | None,
    told_at: float | None,
    *,
    reset: bool,
    as_closed: bool,
) -> KernelFate:
    """The kernel's end of the socket, dated by everybody who saw something of it."""
    user_timeout = Cause.USER_TIMEOUT in (forecast.sending.cause, forecast.idle.cause)
    fate = read_fate(
        track,
        delta,
        watched.cut.began_at,
        user_timeout=user_timeout,
        reset=reset,
        as_closed=as_closed,
        told_at=told_at,
        reset_at=traffic.reset_at,
    )
    fate = dated_close(fate, track, traffic.ended_at)
    if reset and traffic.told_at is not None and fate.cause == Cause.RESET.value:
        # A RST ends a socket at once: the wire dates that better than any sample.
        return replace(fate, gone_at=traffic.told_at, within_s=RESET_WITHIN_S)
    last_copy_at = traffic.copies[-1].segment.time_s if traffic.copies else None
    announced = None if watched.healed else announced_expiry(track, fate)
    lived = (at for at in (last_copy_at, announced) if at)
    over = (at for at in (error_at, traffic.reset_at) if at)
    return narrowed(fate, max(lived, default=None), min(over, default=None))


def _reset_received(segments: Sequence[Segment], flow: FourTuple, direction: Direction, since: float) -> bool:
    """Whether a RST of the flow came out of the router towards this end."""
    ends = flow.ends(direction)
    return any(s.flags & Flag.RST and (s.source, s.destination) == ends and s.time_s >= since for s in segments)


def _tells_apart(started: Program | None) -> bool:
    """Whether a program says ``closed`` of its own closes alone, and ``error`` of what its kernel ended.

    One of ``lab.live`` says ``closed`` of every end, a reset's too.
    """
    return started is not None and (started.module or "").startswith("lab.programs.")


def _instant_of(name: str, process: Process | None, since: float) -> float | None:
    """When a program of the lab's own first said so."""
    if process is None:
        return None
    event = first_event(name, (line for line in process.lines if line.at >= since))
    return None if event is None else instant_of(event)


def _killed_from_outside(process: Process | None, node: str, spec: RunSpec) -> bool:
    asked = any(action.node == node and action.signal == signal.SIGKILL for action in spec.actions)
    return process is not None and process.returncode == -signal.SIGKILL and not asked
