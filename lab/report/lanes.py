"""What the figure draws, as data: one lane per end, from the record and the timeline alone."""

import bisect
import enum
from dataclasses import dataclass

from lab.core.fault import Cut
from lab.core.flow import Direction
from lab.report.record import Branch, EndObservation, EndPrediction, Record
from lab.report.timeline import Timeline

_SAME_SEGMENT_S = 0.0005
"""A copy of the record and a segment of the timeline closer than this are one: copies are an RTO apart, and no RTO is
shorter than a timer tick (1 ms with HZ 1000)."""

_MOST_TALK = 300
"""Ordinary segments drawn per lane: more are no longer told apart."""

_INGRESS = {
    Direction.FORWARD: {"router-left", "client", "client-sink"},
    Direction.RETURN: {"router-right", "server", "server-sink"},
}
"""Where a segment is seen before the hole. Beyond it the same segment is seen again, or is not."""


class MarkKind(enum.Enum):
    """What a segment in a lane is; values are the segment classes where there is one."""

    FIRST_LOST = "first-lost"
    TAIL_LOSS_PROBE = "tail-loss-probe"
    TIMEOUT_COPY = "timeout-copy"
    FAST_COPY = "fast-copy"
    SPURIOUS_COPY = "spurious-copy"
    SYN_COPY = "syn-copy"
    FIN_COPY = "fin-copy"
    KEEPALIVE_PROBE = "keepalive-probe"
    WINDOW_PROBE = "window-probe"
    COPY = "copy"
    """A copy that nobody classified."""

    TALK = "first"
    """An ordinary segment with data, before the cut or after the heal."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One segment."""

    t_s: float
    """Seconds from the cut."""

    kind: MarkKind


@dataclass(frozen=True, slots=True)
class Lane:
    """One end: what it sent, and when it gave up."""

    end: str
    """client or server."""

    direction: Direction
    dark: bool
    """Whether the fault drops this direction."""

    marks: tuple[Mark, ...]
    predicted: Branch | None
    """The branch that applied."""

    seen: EndObservation
    outside: bool = False
    """Whether the end is not in the testbed: nothing is predicted of it, and only its segments are known."""

    closed: bool = False
    """Whether its program closed the socket while it was dark."""

    of_orphan: bool = False
    """Whether ``predicted`` is of the orphan."""

    @property
    def latest_s(self) -> float:
        """The last instant that the lane shows, prediction included."""
        windows = () if self.predicted is None else self.predicted.copy_windows_s
        window = None if self.predicted is None else self.predicted.window_s
        instants = [mark.t_s for mark in self.marks] + [high for _, high in windows]
        gone_s = None if self.seen.orphan is None else self.seen.orphan.gone_s
        seen = (self.seen.gave_up_s, self.seen.noticed_s, self.seen.recovered_s, self.seen.closed_s, gone_s)
        known = (*seen, None if window is None else window[1])
        return max([*instants, *(instant for instant in known if instant is not None)], default=0.0)

    @property
    def earliest_s(self) -> float | None:
        """The first copy, probe or end after the cut, measured or predicted; None where the lane shows none."""
        windows = () if self.predicted is None else self.predicted.copy_windows_s
        sent = (mark.t_s for mark in self.marks if mark.kind not in {MarkKind.TALK, MarkKind.FIRST_LOST})
        instants = [*sent, *(low for low, _ in windows)]
        known = (self.seen.gave_up_s, self.seen.noticed_s)
        return min((t for t in [*instants, *known] if t is not None and t > 0), default=None)


def lanes(record: Record, timeline: Timeline) -> tuple[Lane, Lane]:
    """The client's lane and the server's."""
    return (
        _lane("client", Direction.FORWARD, record, record.prediction.client, record.observation.client, timeline),
        _lane("server", Direction.RETURN, record, record.prediction.server, record.observation.server, timeline),
    )


def _lane(
    end: str,
    direction: Direction,
    record: Record,
    prediction: EndPrediction,
    seen: EndObservation,
    timeline: Timeline,
) -> Lane:
    cut = record.fault.direction
    dark = record.fault.cut_at is not None and (cut is Cut.BOTH or (cut is not None and cut.value == direction.value))
    outside = end == "server" and record.uplink is not None
    marks, closed = _marks(seen, _segments(direction, timeline)), end in record.ends_closed
    of_orphan = closed and prediction.orphan is not None
    predicted = _with_ladder(prediction, seen) if of_orphan else prediction.branch
    return Lane(end, direction, dark, marks, predicted, seen, outside, closed, of_orphan)


def _with_ladder(prediction: EndPrediction, seen: EndObservation) -> Branch | None:
    """What was predicted of an orphan, with the copies from the first one on."""
    orphan, closing, branch = prediction.orphan, prediction.closing, prediction.branch
    if orphan is None or closing is None or branch is None or seen.closed_s is None:
        return orphan
    ladder = closing.copy_windows_s
    later = tuple(each for each in branch.copy_windows_s[len(ladder) :] if each[0] <= seen.closed_s)
    return orphan.model_copy(update={"copy_windows_s": ladder + later})


def _segments(direction: Direction, timeline: Timeline) -> list[Mark]:
    """The classified segments of one direction, as the router received them."""
    kinds = {kind.value: kind for kind in MarkKind}
    return [
        Mark(t, kinds[str(observation.detail["class"])])
        for t, observation in timeline.entries
        if observation.kind == "segment"
        and observation.source in _INGRESS[direction]
        and observation.detail.get("direction") == direction.value
        and observation.detail.get("flow") != "bystander"
        and str(observation.detail.get("class")) in kinds
    ]


def _marks(seen: EndObservation, segments: list[Mark]) -> tuple[Mark, ...]:
    """The record's copies, classified by the timeline where the record is silent, and what only the timeline has."""
    times = [mark.t_s for mark in segments]
    classes = seen.copy_classes if len(seen.copy_classes) == len(seen.copy_times_s) else ()
    copies = [
        Mark(t, _kind(classes[index]) if classes else _kind_at(t, segments, times))
        for index, t in enumerate(seen.copy_times_s)
    ]
    if seen.first_lost_s is not None:
        copies.append(Mark(seen.first_lost_s, MarkKind.FIRST_LOST))
    drawn = sorted(mark.t_s for mark in copies)
    others = [mark for mark in segments if _nearest(mark.t_s, drawn) is None]
    talk = [mark for mark in others if mark.kind is MarkKind.TALK]
    thinned = talk[:: max(1, -(-len(talk) // _MOST_TALK))]
    rest = [mark for mark in others if mark.kind is not MarkKind.TALK]
    return tuple(sorted([*copies, *thinned, *rest], key=lambda mark: mark.t_s))


def _kind(name: str) -> MarkKind:
    try:
        kind = MarkKind(name)
    except ValueError:
        return MarkKind.COPY
    return MarkKind.COPY if kind is MarkKind.TALK else kind


def _kind_at(t: float, segments: list[Mark], times: list[float]) -> MarkKind:
    index = _nearest(t, times)
    return MarkKind.COPY if index is None else _kind(segments[index].kind.value)


def _nearest(t: float, ordered: list[float]) -> int | None:
    """Index of the closest instant, if it is close enough to be the same segment."""
    after = bisect.bisect_left(ordered, t)
    near = [index for index in (after - 1, after) if 0 <= index < len(ordered)]
    best = min(near, key=lambda index: abs(ordered[index] - t), default=None)
    return best if best is not None and abs(ordered[best] - t) <= _SAME_SEGMENT_S else None
