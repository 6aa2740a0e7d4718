"""Brings all witnesses of a run together: rules, counters, captures, samples, output."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lab.core.flow import Direction
from lab.core.hole import Dark, Passage, passage
from lab.core.retransmission import Classified, classify
from lab.core.segment import Flag, Segment
from lab.run.bystander import read_bystander
from lab.run.ends import Readings, read_end, read_far
from lab.run.findings import Findings
from lab.run.noticing import event_of
from lab.run.settle import nudge, settled_counters, settled_matched
from lab.run.sides import Side, counters_moved, kernel_segments, names_of, read_side
from lab.run.spec import inside
from lab.run.watched import Watched
from lab.testbed.ports import Process


def collect(watched: Watched) -> tuple[Findings, Mapping[str, Sequence[Classified]]]:
    """Stop the capture and bring all witnesses together.

    Returns:
        The findings, and per side the flow's segments with their classes, for the timeline.

    Raises:
        InvalidRun: a capture cannot be read.
    """
    testbed = watched.testbed
    after, counted_at = settled_counters(testbed)
    tracks = {node.name: node.track(watched.flow) for node in inside(testbed, watched.spec)}
    outside = watched.spec.uplink is not None
    if watched.healed is None:
        nudge(testbed, watched.fault, outside=outside)
    matched, matched_at = settled_matched(testbed, watched.fault)
    summary = testbed.router.stop_capture()
    translations = {**watched.translations, **(testbed.router.translations() if outside else {})}
    sides = {
        "left": read_side(summary.left, summary),
        "right": read_side(summary.right, summary, names_of(translations)),
    }
    classes = {name: classify(kernel_segments(side), watched.flow) for name, side in sides.items()}
    deltas = {name: counters_moved(watched.before[name], after[name]) for name in after}

    read = Readings(tracks, deltas, counted_at, sides, classes)
    findings = Findings(
        client=read_end(testbed.client, Direction.FORWARD, watched, read),
        server=None if outside else read_end(testbed.server, Direction.RETURN, watched, read),
        far=read_far(watched, read, translations) if outside else None,
        passages=tuple(_passages(sides, watched, matched_at)),
        matched=matched,
        icmp=sum(1 for side in sides.values() for m in side.icmp if _in_the_dark(m.time_s, watched)),
        bystander=read_bystander(watched, sides, deltas["server"] if outside else {}),
        capture=summary,
        cut=watched.cut,
        healed=watched.healed,
        ended_early=_ended_early((s for side in sides.values() for s in kernel_segments(side)), watched),
        watched_until=watched.until,
        counters={name: moved for name, moved in deltas.items() if name != "server" or not outside},
        reconnected=None if watched.reconnect is None else _connected(watched.reconnect),
    )
    return findings, classes


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


def _connected(client: Process) -> bool:
    events = map(event_of, client.lines)
    return any(e is not None and e.get("event") == "connected" for e in events)
