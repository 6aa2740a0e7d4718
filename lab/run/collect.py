"""Brings all witnesses of a run together: rules, counters, captures, samples, output."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lab.core.flow import Direction
from lab.core.hole import Dark, Passage, arrivals, passage
from lab.core.retransmission import Classified, classify
from lab.core.segment import Flag, Segment
from lab.run.bystander import read_bystander
from lab.run.ends import Readings, read_end, read_far
from lab.run.findings import Findings
from lab.run.noticing import event_of
from lab.run.settle import nudge, nudge_healed, settled_counters, settled_matched
from lab.run.sides import Side, counters_moved, kernel_segments, names_of, read_side, seen_from_sink, translated
from lab.run.spec import inside
from lab.run.watched import Watched
from lab.testbed.ports import Process

_ONE_READS = threading.Lock()
"""Of many runs at once, one reads its captures: what others have to do at their instant waits for no more than that."""

_END = (Flag.FIN | Flag.RST).value
"""A plain int: every segment is asked, and an ``IntFlag`` takes longer to make than to compare."""


def collect(watched: Watched) -> tuple[Findings, Mapping[str, Sequence[Classified]]]:
    """Stop the capture and bring all witnesses together.

    Returns:
        The findings, and per vantage point the flow's segments with their classes, for the timeline.

    Raises:
        InvalidRun: a capture cannot be read.
    """
    testbed = watched.testbed
    after, counted_at = settled_counters(testbed)
    tracks = {node.name: node.track(watched.flow) for node in inside(testbed, watched.spec)}
    outside = watched.spec.uplink is not None
    if watched.healed is None:
        nudge(testbed, watched.fault, outside=outside)
    elif not outside:
        nudge_healed(testbed, watched.fault)
    matched, matched_at = settled_matched(testbed, watched.fault)
    interventions = testbed.interventions()
    summary = testbed.router.stop_capture()
    translations = {**watched.translations, **(translated(testbed.router) if outside else {})}
    with _ONE_READS:
        names = {"right": names_of(translations)}
        captured = {name: read_side(path, summary, names.get(name)) for name, path in summary.files.items()}
        sides, ways = _as_the_ends_saw(captured, watched, matched_at)
        cut = watched.fault.direction.directions
        classes = {name: classify(kernel_segments(side), watched.flow) for name, side in sides.items()}
        deltas = {name: counters_moved(watched.before[name], after[name]) for name in after}

        read = Readings(tracks, deltas, counted_at, sides, classes)
        findings = Findings(
            client=read_end(testbed.client, Direction.FORWARD, watched, read),
            server=None if outside else read_end(testbed.server, Direction.RETURN, watched, read),
            far=read_far(watched, read, translations) if outside else None,
            passages=[ways[one] for one in cut],
            open_ways=[way for one, way in ways.items() if one not in cut],
            matched=matched,
            icmp=sum(1 for side in captured.values() for m in side.icmp if _in_the_dark(m.time_s, watched)),
            bystander=read_bystander(watched, sides, deltas["server"] if outside else {}),
            capture=summary,
            cut=watched.cut,
            healed=watched.healed,
            ended_early=_ended_early((s for side in sides.values() for s in kernel_segments(side)), watched),
            watched_until=watched.until,
            counters={name: moved for name, moved in deltas.items() if name != "server" or not outside},
            reconnected=None if watched.reconnect is None else _connected(watched.reconnect),
            interventions=interventions,
        )
        return findings, _by_vantage_point(classes, captured, watched)


def _as_the_ends_saw(
    captured: Mapping[str, Side], watched: Watched, until: float
) -> tuple[dict[str, Side], dict[Direction, Passage]]:
    """What each end sent and received, by its side of the router, and what became of it on its way.

    With the hole in the router its two captures say it all. An end with a sink has sent what its sink's capture holds,
    and has not received what came to it in the dark.

    Args:
        captured: Each capture.
        watched: The run.
        until: When the rules were read for the last time; who was on the way then is passed over.
    """
    dark = Dark(
        began_s=watched.cut.began_at,
        done_s=watched.cut.done_at,
        healed_s=float("inf") if watched.healed is None else watched.healed.began_at,
    )
    sides = {name: captured[name] for name in ("left", "right")}
    fault, passages = watched.fault, dict[Direction, Passage]()
    sunk = fault.placement.sunk
    if sunk is not None:
        door = _near(sunk)
        coming = arrivals(sides[door].segments, watched.flow, sunk.opposite, dark, fault.scope)
        if sunk.opposite in fault.direction.directions:
            passages[sunk.opposite] = coming
        sides[door] = seen_from_sink(sides[door], captured["sink"], coming.missing if sunk.opposite in passages else ())
    for direction in Direction:
        if direction not in passages:
            near, far = _near(direction), _near(direction.opposite)
            passages[direction] = passage(
                sides[near].segments, captured[far].segments, watched.flow, direction, dark, fault.scope
            )
    return sides, {
        one: replace(way, missing=_up_to(until, way.missing), strangers=_up_to(until, way.strangers))
        for one, way in passages.items()
    }


def _near(direction: Direction) -> str:
    """The side of the router where the sender of a direction is."""
    return "left" if direction is Direction.FORWARD else "right"


def _by_vantage_point(
    classes: Mapping[str, Sequence[Classified]], captured: Mapping[str, Side], watched: Watched
) -> dict[str, Sequence[Classified]]:
    """The classified segments by where they were seen."""
    found: dict[str, Sequence[Classified]] = {f"router-{side}": classified for side, classified in classes.items()}
    if watched.fault.placement.sunk is not None:
        into_sink, door = set(captured["sink"].segments), f"router-{_near(watched.fault.placement.sunk)}"
        found[watched.fault.placement.value] = [c for c in found[door] if c.segment in into_sink]
        found[door] = [c for c in found[door] if c.segment not in into_sink]
    return found


def _up_to(until: float, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(segment for segment in segments if segment.time_s <= until)


def _ended_early(segments: Iterable[Segment], watched: Watched) -> int | None:
    if watched.spec.closes:
        return None
    return sum(
        1
        for s in segments
        if s.flags & _END
        and s.time_s < watched.cut.done_at
        and watched.flow.direction_of(s.source, s.destination) is not None
    )


def _in_the_dark(time_s: float, watched: Watched) -> bool:
    return watched.cut.began_at <= time_s and (watched.healed is None or time_s < watched.healed.began_at)


def _connected(client: Process) -> bool:
    events = map(event_of, client.lines)
    return any(e is not None and e.get("event") == "connected" for e in events)
