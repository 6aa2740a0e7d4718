"""One flow from first to last segment: its copies, the silences in it, how it began and ended."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from lab.core.budget import Budget
from lab.core.flow import Direction, FourTuple
from lab.core.icmp import IcmpMessage
from lab.core.ladder import Ladder, ladder_of
from lab.core.retransmission import FlowClassifier, flow_of
from lab.core.segment import Flag, Segment
from lab.core.segment_class import Classified, SegmentClass, Trigger
from lab.core.silence import Episode, Kind, Silence, main_silence, silence_of

_SYN, _FIN, _RST, _ACK = int(Flag.SYN), int(Flag.FIN), int(Flag.RST), int(Flag.ACK)
_KEPT_MARKS = 64

_PROBES = {SegmentClass.KEEPALIVE_PROBE: Kind.KEEPALIVE, SegmentClass.WINDOW_PROBE: Kind.WINDOW}
_FIRST, _TAP = SegmentClass.FIRST, SegmentClass.TAP_DUPLICATE


@dataclass(frozen=True, slots=True)
class Mark:
    """A RST or a FIN, copies of it left out."""

    time_s: float
    direction: Direction


@dataclass(slots=True)
class _Side:
    """What a direction has carried."""

    segments: int = 0
    octets: int = 0
    """Of payload, copies included."""
    first_at: float | None = None
    last_at: float | None = None
    open: Episode | None = None
    probes: list[float] = field(default_factory=list)
    """Times of the current series of window probes."""
    answered_probes: int = 0
    keepalives: int = 0
    answered_keepalives: int = 0

    def carry(self, segment: Segment) -> None:
        """Count a segment."""
        if self.first_at is None:
            self.first_at = segment.time_s
        self.last_at = segment.time_s
        self.segments += 1
        self.octets += segment.length


class Conversation:
    """Follows one flow.

    Args:
        first: Its first segment.
        budget: How much to remember; shared by the flows of a capture.
    """

    def __init__(self, first: Segment, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self.flow: FourTuple = flow_of(first)
        self.assumed = not first.flags & _SYN
        """Whether the client is a guess, for want of a handshake."""
        self.copies: list[Classified] = []
        """Copies and probes in order, as many as the budget allows."""
        self.unlisted = 0
        """Copies and probes beyond it."""
        self.episodes: list[Episode] = []
        """Copies in a row by timer, healed or not, in order of their end."""
        self.rst: list[Mark] = []
        self.fin: list[Mark] = []
        self.icmp: Counter[str] = Counter()
        """Messages that quote the flow, by meaning."""
        self._forward, self._return = _Side(), _Side()
        self._firsts = 0
        self._others: Counter[SegmentClass] = Counter()
        self.handshake = False
        """Whether both SYNs were seen."""
        self.last_copy_at: float | None = None
        self._classifier = FlowClassifier(self.flow, self._budget)
        self._places: dict[int, int] = {}

    def ended_by(self, segment: Segment) -> bool:
        """Whether a segment opens a new connection between the same ports."""
        return self._classifier.opens_anew(segment)

    def add_icmp(self, message: IcmpMessage) -> None:
        """Take an ICMP message that quotes this flow."""
        self.icmp[f"{message.meaning}, from {message.sender}"] += 1

    def add(self, segment: Segment) -> None:
        """Take the flow's next segment."""
        forward = segment.source == self.flow.client
        side, other = (self._forward, self._return) if forward else (self._return, self._forward)
        calm = side.open is None and other.open is None and not side.probes
        if calm and self._classifier.take_plain(segment, forward=forward):
            self._firsts += 1
            side.carry(segment)
            return
        item = self._classifier.observe(segment)
        kind = item.segment_class
        if kind is _FIRST:
            self._firsts += 1
        else:
            self._others[kind] += 1
            if kind is _TAP:
                return
        self._take(side, other, item)
        side.carry(segment)

    def _take(self, side: _Side, other: _Side, item: Classified) -> None:
        if other.open is not None:
            self._may_answer(other, item)
        if item.segment_class is not _FIRST:
            self._take_copy(side, other, item)
        else:
            if side.open is not None:
                self._may_go_on(side, item)
            if item.segment.length and side.probes:
                side.probes = []
        if item.segment.flags & (_SYN | _FIN | _RST):
            self._take_mark(item)
        if self._classifier.revised:
            self._correct()

    @property
    def classes(self) -> Counter[SegmentClass]:
        """How many segments there were of each class, later verdicts included."""
        return +Counter({_FIRST: self._firsts, **self._others})

    @property
    def sides(self) -> dict[Direction, _Side]:
        """What each direction has carried."""
        return {Direction.FORWARD: self._forward, Direction.RETURN: self._return}

    def close(self, until: float) -> None:
        """The capture ended at ``until``, or a new connection took the ports: what is open stays unhealed."""
        for side in self.sides.values():
            if side.open is not None:
                side.open.watched_until = until
                self.episodes.append(side.open)
                side.open = None

    @property
    def silence(self) -> Silence | None:
        """The main silence; call ``close`` before."""
        return silence_of(self.episodes)

    @property
    def ladder(self) -> Ladder | None:
        """The longest series of timer copies, else of window probes."""
        best = main_silence(self.episodes) or max(self.episodes, key=lambda e: len(_timer_steps(e)), default=None)
        steps = [] if best is None else _timer_steps(best)
        if best is not None and steps:
            return ladder_of(_ladder_class(best.copies[0]), steps, capped=not self.icmp)
        probes = max((s.probes for s in self.sides.values()), key=len)
        return ladder_of(SegmentClass.WINDOW_PROBE, [later - earlier for earlier, later in pairwise(probes)])

    def _take_copy(self, side: _Side, other: _Side, item: Classified) -> None:
        kind = _PROBES.get(item.segment_class)
        self.last_copy_at = item.segment.time_s
        listed = self._budget.copies > 0
        if listed:
            self._budget.copies -= 1
            self._places[item.number] = len(self.copies)
            self.copies.append(item)
        else:
            self.unlisted += 1
        if kind is Kind.KEEPALIVE:
            side.keepalives += 1
        elif kind is Kind.WINDOW and listed:
            if not side.probes and other.last_at is not None:
                side.probes.append(other.last_at)  # the first probe waits from the closing of the window
            side.probes.append(item.segment.time_s)
        if kind is None and item.trigger is Trigger.ACKS:
            return
        episode = side.open
        if episode is not None and kind is None and _moved_on(episode, item):
            self._heal(side, item)
            episode = None
        if episode is None or (kind is None and episode.kind is not Kind.ANSWER):
            episode = self._begin(side, other, item, kind or Kind.ANSWER)
        sender = self._classifier.sender(item.direction)
        needless = sender.acked is not None and item.end <= sender.acked - (sender.origin or 0)
        episode.add(item, needless=needless, listed=listed)

    def _begin(self, side: _Side, other: _Side, item: Classified, kind: Kind) -> Episode:
        """Open an episode; an unanswered keepalive before it belongs to the same silence."""
        before = side.open
        since, awaited = item.segment.time_s, item.seq
        if kind is Kind.ANSWER:
            sender = self._classifier.sender(item.direction)
            since -= item.waited_s or 0.0
            oldest = sender.oldest_unacked()
            if oldest is not None and item.segment_class is not SegmentClass.SPURIOUS_COPY:
                since = min(since, oldest.segment.time_s)
                awaited = min(awaited, max(oldest.start, sender.acked or oldest.start) - (sender.origin or 0))
        if before is not None:
            since = min(since, before.since)
        episode = Episode(item.direction, kind, since, other.last_at, awaited, item.segment.ack)
        side.open = episode
        return episode

    def _may_answer(self, waiting: _Side, item: Classified) -> None:
        """Whether a segment ends the other side's episode, or passes it by."""
        episode = waiting.open
        if episode is None:
            return
        if episode.kind is not Kind.ANSWER:
            waiting.answered_probes += episode.kind is Kind.WINDOW
            waiting.answered_keepalives += episode.kind is Kind.KEEPALIVE
            self._heal(waiting, item)
        elif item.segment.flags & _RST or (not episode.deaf and self._acknowledges(episode)):
            self._heal(waiting, item)
        else:
            episode.passed_by += 1

    def _acknowledges(self, episode: Episode) -> bool:
        sender = self._classifier.sender(episode.direction)
        return sender.acked is not None and sender.acked - (sender.origin or 0) > episode.awaited

    def _may_go_on(self, side: _Side, item: Classified) -> None:
        """Whether a side that repeated itself shows that it was answered after all.

        It had repeated what was acknowledged, and now sends or acknowledges something new; or it sends something new
        and its acknowledgments have risen, so that it hears although its answers were not captured.
        """
        episode = side.open
        if episode is None or episode.kind is not Kind.ANSWER:
            return
        hears = item.segment.ack != episode.heard
        if (hears or item.segment.space) if episode.deaf else (hears and item.segment.space):
            self._heal(side, item)

    def _heal(self, side: _Side, item: Classified) -> None:
        if side.open is not None and self._budget.episodes > 0:
            self._budget.episodes -= 1
            side.open.healed_at = item.segment.time_s
            self.episodes.append(side.open)
        side.open = None

    def _take_mark(self, item: Classified) -> None:
        flags, kind = item.segment.flags, item.segment_class
        mark = Mark(item.segment.time_s, item.direction)
        if flags & _RST and len(self.rst) < _KEPT_MARKS:
            self.rst.append(mark)
        elif flags & _FIN and not any(m.direction is item.direction for m in self.fin):
            self.fin.append(mark)
        if flags & (_SYN | _ACK) == _SYN | _ACK and kind is _FIRST:
            self.handshake = not self.assumed

    def _correct(self) -> None:
        for copy in self._classifier.revised:
            place = self._places.get(copy.number)
            if place is not None:
                self._others[self.copies[place].segment_class] -= 1
                self._others[copy.segment_class] += 1
                self.copies[place] = copy
            episode = self.sides[copy.direction].open
            if episode is not None:
                episode.correct(copy)
        self._classifier.revised.clear()


def _moved_on(episode: Episode, item: Classified) -> bool:
    """Whether a copy is of something later, by a sender that hears: what was repeated before had been answered."""
    hears = item.segment.ack != episode.heard
    return episode.kind is Kind.ANSWER and hears and item.seq >= episode.highest


def _timer_steps(episode: Episode) -> list[float]:
    """Waits before the timer copies of the head; what a timeout resends along with it did not wait."""
    head = episode.copies[0].seq
    steps: list[float] = []
    for copy in episode.copies:
        waited_s = copy.waited_s or 0.0
        along = copy.seq > head or (steps and waited_s < steps[-1] / 4)
        if copy.trigger is Trigger.TIMEOUT and not along:
            steps.append(waited_s)
    return steps


def _ladder_class(copy: Classified) -> SegmentClass:
    """What the ladder is made of; needless copies count as timeouts."""
    kind = copy.segment_class
    return kind if kind in {SegmentClass.SYN_COPY, SegmentClass.FIN_COPY} else SegmentClass.TIMEOUT_COPY
