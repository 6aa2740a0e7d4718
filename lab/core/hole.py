"""What went into the hole and what came out of it, from the captures on its two sides.

The near side of a direction is where its sender is: left for forward, right for return. A packet that the near side
saw and the far side never did died in between. Packets are told apart by everything that a router leaves alone, as a
multiset: two identical acknowledgments are two.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from lab.core.fault import Scope
from lab.core.flow import Direction, FourTuple
from lab.core.segment import Flag, Segment


@dataclass(frozen=True, slots=True)
class Dark:
    """When the fault was in force, on the clock of the segments."""

    began_s: float
    """Just before the commit that cut: a packet that entered earlier may still come out."""

    done_s: float
    """Just after it: nothing that enters from here on may come out."""

    healed_s: float
    """Just before the commit that healed; infinity while the hole is open."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One direction of the flow through the router."""

    direction: Direction
    entered: int
    """Segments seen at the near side in the whole capture."""

    left: int
    """Segments seen at the far side in the whole capture."""

    missing: tuple[Segment, ...]
    """Seen near and never far, with the near side's time."""

    crossed: tuple[Segment, ...]
    """Entered while the hole was dark, and came out all the same."""

    strangers: tuple[Segment, ...]
    """Seen far and never near: nothing in the lab may send these."""


def passage(
    near: Iterable[Segment],
    far: Iterable[Segment],
    flow: FourTuple,
    direction: Direction,
    dark: Dark,
    scope: Scope = Scope.FLOW,
) -> Passage:
    """Hold the two captures of one direction against each other.

    Args:
        near: All segments of the near capture in order; other flows are passed over.
        far: The same of the far capture.
        flow: The flow that was cut.
        direction: Which of its ways.
        dark: When the fault was in force.
        scope: Whether the whole of both hosts was cut, and not the flow alone.

    Returns:
        Who went missing, who crossed, and who came from nowhere.
    """
    entered = [s for s in near if _belongs(s, flow, direction, scope)]
    came_out = [s for s in far if _belongs(s, flow, direction, scope)]
    waiting: dict[Hashable, list[Segment]] = {}
    for segment in entered:
        waiting.setdefault(_identity(segment), []).append(segment)
    crossed: list[Segment] = []
    strangers: list[Segment] = []
    for segment in came_out:
        origin = _latest_before(waiting.get(_identity(segment), []), segment.time_s)
        if origin is None:
            strangers.append(segment)
            continue
        if dark.done_s < origin.time_s < dark.healed_s:
            crossed.append(origin)
    missing = sorted((s for queue in waiting.values() for s in queue), key=lambda s: s.time_s)
    return Passage(direction, len(entered), len(came_out), tuple(missing), tuple(crossed), tuple(strangers))


def arrivals(
    near: Iterable[Segment], flow: FourTuple, direction: Direction, dark: Dark, scope: Scope = Scope.FLOW
) -> Passage:
    """One direction that is dropped where it arrives, behind every capture.

    Whatever came while it was dark is missing: that it was dropped, the rule's own count has to say. So nothing here
    can be seen to cross.

    Args:
        near: All segments of the last capture before its receiver, in order.
        flow: The flow that was cut.
        direction: Which of its ways.
        dark: When the fault was in force.
        scope: Whether the whole of both hosts was cut, and not the flow alone.
    """
    came = [s for s in near if _belongs(s, flow, direction, scope)]
    missing = tuple(s for s in came if dark.began_s <= s.time_s < dark.healed_s)
    return Passage(direction, len(came), len(came) - len(missing), missing, (), ())


def is_nudge(segment: Segment) -> bool:
    """Whether the lab itself sent this: an acknowledgment that no kernel would send, to see the rule bite."""
    # Most segments differ in the first two already.
    return segment.seq == segment.ack == segment.window == segment.length == 0 and segment.flags == Flag.ACK


def _belongs(segment: Segment, flow: FourTuple, direction: Direction, scope: Scope) -> bool:
    source, destination = flow.ends(direction)
    if scope is Scope.HOST:
        return (segment.source.address, segment.destination.address) == (source.address, destination.address)
    return (segment.source, segment.destination) == (source, destination)


def _identity(segment: Segment) -> Hashable:
    return (
        segment.source,
        segment.destination,
        segment.seq,
        segment.ack,
        segment.flags,
        segment.window,
        segment.length,
        segment.timestamps,
        segment.ip_id,
    )


def _latest_before(waiting: list[Segment], time_s: float) -> Segment | None:
    # The way through a router takes microseconds: of several equal packets it is the last one that came out.
    for index in range(len(waiting) - 1, -1, -1):
        if waiting[index].time_s <= time_s:
            return waiting.pop(index)
    return None
