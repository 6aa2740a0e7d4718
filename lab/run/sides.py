"""The captures of a run on one clock, and what they show of the kernels' counters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.core.errors import InvalidRun, UsageError
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.hole import is_nudge
from lab.core.icmp import IcmpMessage
from lab.core.retransmission import classify
from lab.core.segment import Segment
from lab.core.segment_class import SegmentClass
from lab.pcap import read_packets
from lab.testbed.ports import CaptureSummary, Counters, Router

COUNTERS = {
    "retransmissions": "TcpRetransSegs",
    "keepalive-probes": "TcpExtTCPKeepAlive",
    "window-probes": "TcpExtTCPWinProbe",
}
"""What a capture can show beside the kernel's own count of it."""


Names = Mapping[tuple[Endpoint, Endpoint], tuple[Endpoint, Endpoint]]
"""Source and destination on the far side of a translation to what they are on the near one."""


@dataclass(frozen=True, slots=True)
class Side:
    """One capture, on CLOCK_MONOTONIC."""

    segments: Sequence[Segment]
    icmp: Sequence[IcmpMessage]


def read_side(path: Path, summary: CaptureSummary, names: Names | None = None) -> Side:
    """A capture's segments and ICMP messages, brought onto CLOCK_MONOTONIC, and their ends as the client has them.

    Raises:
        InvalidRun: it cannot be read to its end.
    """
    offset = summary.clocks[0].offset
    segments: list[Segment] = []
    icmp: list[IcmpMessage] = []
    try:
        for packet in read_packets(path):
            if isinstance(packet, Segment):
                segments.append(_renamed(packet, names)._replace(time_s=packet.time_s - offset))
            else:
                icmp.append(replace(packet, time_s=packet.time_s - offset))
    except UsageError as error:
        raise InvalidRun(f"The lab's own capture cannot be read: {error.message}") from error
    return Side(segments, icmp)


def translated(router: Router) -> dict[FourTuple, FourTuple]:
    """Connections out by the uplink, as the client has them and as the far end does."""
    return {passing.flow: passing.translated for passing in router.flows() if passing.translated is not None}


def names_of(translations: Mapping[FourTuple, FourTuple]) -> Names:
    """How to read the far side of these translations, both ways of each flow."""
    return {
        there.ends(direction): here.ends(direction) for here, there in translations.items() for direction in Direction
    }


def _renamed(segment: Segment, names: Names | None) -> Segment:
    ends = None if names is None else names.get((segment.source, segment.destination))
    return segment if ends is None else segment._replace(source=ends[0], destination=ends[1])


def seen_from_sink(door: Side, sink: Side, lost: Iterable[Segment]) -> Side:
    """What an end with a sink has sent and received.

    Args:
        door: The router's interface towards it.
        sink: What went into its sink instead of coming there.
        lost: What came out there, and was dropped when it arrived.
    """
    dropped = set(lost)
    kept = [segment for segment in door.segments if segment not in dropped]
    segments = sorted([*kept, *sink.segments], key=lambda segment: segment.time_s)
    return Side(segments, [*door.icmp, *sink.icmp])


def kernel_segments(side: Side) -> list[Segment]:
    """What the kernels sent: everything but the lab's own nudges."""
    return [segment for segment in side.segments if not is_nudge(segment)]


def count_sent_again(segments: Sequence[Segment], addresses: tuple[str, ...], until: float) -> dict[str, int]:
    """What a node put on the wire again, over all its flows, up to an instant; keys of ``COUNTERS``."""
    counts = dict.fromkeys(COUNTERS, 0)
    for flow_segments in by_flow(segments).values():
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


def by_flow(segments: Iterable[Segment]) -> dict[frozenset[Endpoint], list[Segment]]:
    """Segments by the two ends that they travel between."""
    flows: dict[frozenset[Endpoint], list[Segment]] = {}
    for segment in segments:
        flows.setdefault(frozenset((segment.source, segment.destination)), []).append(segment)
    return flows


def counters_moved(before: Counters, after: Counters) -> dict[str, int]:
    """How far each counter moved; those that stood still are left out."""
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}
