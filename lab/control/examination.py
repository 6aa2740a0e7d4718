"""What the captures of both sides say of one fault.

``examine`` asks a process of its own (``examiner``): reading a hundred megabytes in the controller would hold up a cut.
Both are this program, so that values travel pickled.
"""

import math
import pickle
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.control.child import python
from lab.core.errors import InvalidRun, LabError
from lab.core.fault import Fault
from lab.core.flow import Direction, FourTuple
from lab.core.hole import Dark, Passage, is_nudge, passage
from lab.core.icmp import IcmpMessage
from lab.core.retransmission import classify
from lab.core.segment import Flag, Segment
from lab.pcap import Capture

TIMEOUT_S = 120.0

_NEAR_FAR = {Direction.FORWARD: ("left", "right"), Direction.RETURN: ("right", "left")}
"""The side at which segments of a direction come in, and the one at which they leave."""


@dataclass(frozen=True, slots=True)
class Question:
    """One fault, and where its packets are."""

    fault: Fault
    files: dict[str, tuple[Path, ...]]
    """Per side, oldest first."""

    dark: Dark
    """On the clock of the captures, Unix time."""

    since: float
    """Nothing before this is the fault's: one second before the cut, or the heal of an earlier one."""

    until: float
    """Up to here the rules were read, Unix time."""


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of the flow."""

    missing: int
    """Those that entered and never came out, up to the last reading of the rules."""

    early: int
    """Of these, how many before the cut."""

    crossed: int
    crossed_rst: int
    crossed_fin: int
    """Segments that came through the hole, and what they were."""

    strangers: int
    """Segments that came out and never went in."""

    first_lost_at: float | None
    """Unix time of the first segment that went missing."""

    copies_at: tuple[float, ...]
    """Unix times of the copies that this direction's sender sent into the hole."""

    back_at: float | None
    """When the first segment after the heal came through, Unix time."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found."""

    ways: dict[Direction, Way]
    """Both directions, those that were not cut too."""

    ended_early: int
    """FIN or RST of the flow before the cut."""

    icmp: int
    """ICMP messages about the flow while it was dark."""

    reset_after: bool
    """Whether a RST of the flow passed after the heal."""


def examine(question: Question) -> Evidence:
    """The evidence, found by a process of its own.

    Raises:
        InvalidRun: a capture cannot be read, or the process failed.
    """
    try:
        done = subprocess.run(
            python("lab.control.examiner"),
            input=pickle.dumps(question),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidRun(f"The captures could not be read within {TIMEOUT_S:g} s.") from None
    if done.returncode != 0:
        words = done.stderr.decode(errors="backslashreplace").strip().splitlines()
        raise InvalidRun(f"The captures could not be examined: {words[-1] if words else 'no reason given'}")
    found = pickle.loads(done.stdout)  # noqa: S301 - from our own child
    if isinstance(found, LabError):
        raise found
    assert isinstance(found, Evidence)
    return found


def find(question: Question) -> Evidence:
    """The evidence, found by the calling process.

    Raises:
        UsageError: a capture cannot be read.
    """
    flow = question.fault.flow
    sides = {name: _read(paths, question) for name, paths in question.files.items()}
    segments = {name: [one for one in packets if isinstance(one, Segment)] for name, packets in sides.items()}
    of_flow = [s for side in segments.values() for s in side if _is_of(s, flow) and not is_nudge(s)]
    dark = question.dark
    return Evidence(
        ways={direction: _way(direction, segments, question) for direction in Direction},
        ended_early=sum(1 for s in of_flow if s.flags & (Flag.FIN | Flag.RST) and s.time_s < dark.began_s),
        icmp=sum(1 for side in sides.values() for one in side if _is_complaint(one, question)),
        reset_after=any(s.flags & Flag.RST for s in of_flow if s.time_s > dark.healed_s),
    )


def _read(paths: Sequence[Path], question: Question) -> list[Segment | IcmpMessage]:
    """The packets that concern the fault; the capture goes on, so that its last block may be half written."""
    hosts = {end.address for end in question.fault.flow}
    return [
        packet
        for path in paths
        for packet in Capture(path).packets()
        if hosts <= {packet.source.address, packet.destination.address}
    ]


def _way(direction: Direction, segments: dict[str, list[Segment]], question: Question) -> Way:
    near, far = (segments[side] for side in _NEAR_FAR[direction])
    fault, dark = question.fault, question.dark
    seen = passage(_since(near, question), _since(far, question), fault.flow, direction, dark, fault.scope)
    missing = [s for s in seen.missing if s.time_s <= question.until]
    return Way(
        missing=len(missing),
        early=sum(1 for s in missing if s.time_s < dark.began_s),
        crossed=len(seen.crossed),
        crossed_rst=_with(seen.crossed, Flag.RST),
        crossed_fin=_with(seen.crossed, Flag.FIN),
        strangers=_strangers(seen, question),
        first_lost_at=next((s.time_s for s in missing if s.time_s >= dark.began_s), None),
        copies_at=tuple(_copies(near, direction, question)),
        back_at=_back(far, direction, question),
    )


def _copies(near: Iterable[Segment], direction: Direction, question: Question) -> Iterator[float]:
    flow, dark = question.fault.flow, question.dark
    for one in classify([s for s in near if _is_of(s, flow) and not is_nudge(s)], flow):
        at = one.segment.time_s
        if one.direction is direction and one.segment_class.is_copy and dark.began_s <= at < dark.healed_s:
            yield at


def _back(far: Iterable[Segment], direction: Direction, question: Question) -> float | None:
    if math.isinf(question.dark.healed_s):
        return None
    ends, healed = question.fault.flow.ends(direction), question.dark.healed_s
    return next((s.time_s for s in far if s.time_s > healed and _ends(s) == ends and not s.flags & Flag.RST), None)


def _strangers(seen: Passage, question: Question) -> int:
    # At the very start of what is looked at, a segment's way in may lie just before it.
    return sum(1 for s in seen.strangers if question.since + 0.01 < s.time_s <= question.until)


def _since(segments: Iterable[Segment], question: Question) -> list[Segment]:
    return [s for s in segments if s.time_s >= question.since]


def _with(segments: Iterable[Segment], flag: Flag) -> int:
    return sum(1 for s in segments if s.flags & flag)


def _ends(segment: Segment) -> tuple[object, object]:
    return segment.source, segment.destination


def _is_of(segment: Segment, flow: FourTuple) -> bool:
    return flow.direction_of(segment.source, segment.destination) is not None


def _is_complaint(packet: Segment | IcmpMessage, question: Question) -> bool:
    if not isinstance(packet, IcmpMessage):
        return False
    in_the_dark = question.dark.began_s <= packet.time_s < question.dark.healed_s
    return in_the_dark and question.fault.flow.direction_of(packet.source, packet.destination) is not None
