"""Classification of every segment of a flow: sent for the first time, or a copy, and what made the sender copy it.

A copy is recognised by sequence space, never by equal (sequence, length) pairs: a 64 KB offloaded segment may be resent
1448 octets at a time. What triggered it is read from time and from what the other side had said before
(``lab.core.trigger``). Two verdicts come late: where the first copy of a lone segment could be a tail-loss probe or a
timeout, the wait before the second one decides; and a D-SACK proves a copy needless.

Sources: RFC 9293, 2883, 5681, 6298, 6675, 8985; Linux ``net/ipv4/tcp_output.c`` (``tcp_send_loss_probe``,
``tcp_xmit_probe_skb``).
"""

from collections.abc import Iterable

from lab.core.budget import Budget
from lab.core.flow import Direction, FourTuple
from lab.core.segment import Flag, Segment
from lab.core.segment_class import Classified, SegmentClass, Trigger
from lab.core.sender import Sender, Transmission
from lab.core.seqspace import unwrap
from lab.core.tap import is_tap_duplicate, is_tap_duplicate_ack
from lab.core.trigger import BACKED_OFF, trigger_of

__all__ = ["Classified", "FlowClassifier", "SegmentClass", "Trigger", "classify", "flow_of"]

_SYN, _FIN, _RST, _ACK = int(Flag.SYN), int(Flag.FIN), int(Flag.RST), int(Flag.ACK)

REORDERED_S = 0.003
"""A segment that is late by less was overtaken on the way; tshark takes the same figure where it knows no RTT."""

TIMER_S = 0.1
"""No retransmission timer is shorter by default; half the 200 ms of Linux and BSD, to allow for jitter on the way."""

KEEPALIVE_IDLE_S = 0.9
"""TCP_KEEPIDLE is at least 1 s (tcp(7)): a one-octet copy of acknowledged data after less is a needless copy."""

_REVISABLE = 64
"""Copies per direction that a D-SACK may still speak of."""

_CLASS_OF = {
    Trigger.TIMEOUT: SegmentClass.TIMEOUT_COPY,
    Trigger.PROBE: SegmentClass.TAIL_LOSS_PROBE,
    Trigger.ACKS: SegmentClass.FAST_COPY,
}

_NOT_PLAIN = _SYN | _FIN | _RST | _ACK

_Verdict = tuple[SegmentClass, Trigger | None, float | None]
_FIRST: _Verdict = (SegmentClass.FIRST, None, None)


class FlowClassifier:
    """Classifies the segments of one flow as they come.

    Args:
        flow: Whose segments these are; all must belong to it.
        budget: How much to remember; shared by the flows of a capture.
    """

    def __init__(self, flow: FourTuple, budget: Budget | None = None) -> None:
        self.flow = flow
        budget = budget or Budget()
        self._forward, self._return = Sender(budget), Sender(budget)
        self._count = 0
        self._maybe_probe: dict[Direction, Classified | None] = dict.fromkeys(Direction)
        self._revisable: dict[Direction, list[Classified]] = {d: [] for d in Direction}
        self.revised: list[Classified] = []
        """Earlier results that later segments corrected; whoever keeps results takes them from here and clears it."""

    def sender(self, direction: Direction) -> Sender:
        """What is known of the side that sends in ``direction``."""
        return self._forward if direction is Direction.FORWARD else self._return

    def opens_anew(self, segment: Segment) -> bool:
        """Whether a segment is the SYN of a new connection between the same ports."""
        if segment.flags & (_SYN | _ACK | _RST) != _SYN:
            return False
        me = self._forward if segment.source == self.flow.client else self._return
        return me.origin is not None and me.syn != segment.seq

    def take_plain(self, segment: Segment, *, forward: bool) -> bool:
        """Take a segment that is plainly a first sending, at a third of the cost of ``observe``.

        Args:
            segment: The next one of the flow.
            forward: Whether the client sent it.

        Returns:
            False where it needs a closer look, and nothing was taken: anything but data in order, or an
            acknowledgment that makes progress, without SYN, FIN, RST or SACK.
        """
        me, peer = (self._forward, self._return) if forward else (self._return, self._forward)
        start, acked, length = me.next, peer.acked, segment.length
        if (
            segment.flags & _NOT_PLAIN != _ACK
            or segment.seq != start & 0xFFFF_FFFF
            or segment.sack
            or acked is None
            or me.origin is None
            or me.fin is not None
        ):
            return False
        progress = (segment.ack - acked) & 0xFFFF_FFFF
        if progress > peer.next - acked:
            return False
        if length > 1:
            me.extend(start, start + length, segment)
        elif not length and progress:
            me.note_ack(segment)
        else:
            return False
        if progress:
            peer.progress(acked + progress, segment.time_s)
        me.last_at = segment.time_s
        me.window = segment.window
        self._count += 1
        return True

    def observe(self, segment: Segment) -> Classified:
        """What ``segment`` is, as far as can be told when it is seen; see ``revised``."""
        if segment.source == self.flow.client:
            direction, me, peer = Direction.FORWARD, self._forward, self._return
        else:
            direction, me, peer = Direction.RETURN, self._return, self._forward
        if me.origin is None:
            me.begin(segment)
        start = unwrap(segment.seq, me.next)
        kind, trigger, waited_s = _judge(me, peer, segment, start)
        result = Classified(segment, direction, kind, start - (me.origin or 0), trigger, self._count, waited_s)
        self._count += 1
        if kind is SegmentClass.TAP_DUPLICATE:
            return result
        if trigger is not None:
            self._note_copy(direction, result)
        me.last_at = segment.time_s
        me.window = segment.window
        if segment.flags & (_ACK | _RST) == _ACK:
            if segment.sack:
                self._take_dsack(direction.opposite, peer, segment)
            peer.acknowledge(segment)
        return result

    def _note_copy(self, direction: Direction, copy: Classified) -> None:
        """Remember a copy for a later verdict on it, and pass the verdict on the one before."""
        before = self._maybe_probe[direction]
        self._maybe_probe[direction] = copy if copy.trigger is Trigger.PROBE else None
        revisable = self._revisable[direction]
        revisable.append(copy)
        del revisable[:-_REVISABLE]
        if before is None or copy.trigger is not Trigger.TIMEOUT:
            return
        same_flight = before.seq <= copy.seq and copy.end <= before.end
        if same_flight and (copy.waited_s or 0.0) >= BACKED_OFF * (before.waited_s or 0.0):
            probe = before.segment_class is SegmentClass.TAIL_LOSS_PROBE
            kind = SegmentClass.TIMEOUT_COPY if probe else before.segment_class
            corrected = before._replace(trigger=Trigger.TIMEOUT, segment_class=kind)
            self.revised.append(corrected)
            revisable[:] = [corrected if c.number == before.number else c for c in revisable]

    def _take_dsack(self, direction: Direction, sender: Sender, segment: Segment) -> None:
        """Take the report that something arrived twice: a first SACK block that repeats the rest (RFC 2883)."""
        left, right = segment.sack[0]
        below_ack = (segment.ack - right) & 0xFFFF_FFFF < 0x8000_0000
        repeats_second = len(segment.sack) > 1 and _inside(segment.sack[0], segment.sack[1])
        if sender.origin is None or not (below_ack or repeats_second):
            return
        low = unwrap(left, sender.next) - sender.origin
        high = unwrap(right, sender.next) - sender.origin
        revisable = self._revisable[direction]
        for n in range(len(revisable) - 1, -1, -1):
            copy = revisable[n]
            if copy.seq < high and low < copy.end:
                del revisable[n]  # one report, one copy
                if copy.segment_class in _CLASS_OF.values():
                    self.revised.append(copy._replace(segment_class=SegmentClass.SPURIOUS_COPY))
                return


def classify(segments: Iterable[Segment], flow: FourTuple | None = None) -> list[Classified]:
    """Every segment of one flow with its class, later insight included.

    Args:
        segments: In the order captured; those of other flows are left out.
        flow: Which flow; by default the first segment's, with its client as ``flow_of`` finds it.

    Returns:
        One entry per segment of the flow, in order. A new connection between the same ports starts afresh.
    """
    results: list[Classified] = []
    classifier: FlowClassifier | None = None
    offset = 0
    for segment in segments:
        flow = flow or flow_of(segment)
        if flow.direction_of(segment.source, segment.destination) is None:
            continue
        if classifier is None or classifier.opens_anew(segment):
            classifier = FlowClassifier(flow)
            offset = len(results)
        results.append(classifier.observe(segment))
        for correction in classifier.revised:
            results[offset + correction.number] = correction
        classifier.revised.clear()
    return results


def flow_of(segment: Segment) -> FourTuple:
    """The flow of its first segment: a SYN tells the client, else it is the side with the higher port."""
    source, destination = segment.source, segment.destination
    higher = source.port >= destination.port
    from_client = not segment.flags & _ACK if segment.flags & _SYN else higher
    return FourTuple(source, destination) if from_client else FourTuple(destination, source)


def _judge(me: Sender, peer: Sender, segment: Segment, start: int) -> _Verdict:
    if segment.flags & _RST:
        return _FIRST
    if not segment.length and not segment.flags & (_SYN | _FIN):
        return _judge_empty(me, peer, segment, start), None, None
    if me.fin is not None and segment.length and start >= me.fin:
        me.next = me.fin  # Data beyond a FIN: the header that showed the FIN was damaged.
        me.fin = None
    if start >= me.next:
        return _judge_new(me, peer, segment, start), None, None
    return _judge_old(me, peer, segment, start)


def _judge_empty(me: Sender, peer: Sender, segment: Segment, start: int) -> SegmentClass:
    """A segment without sequence space: an acknowledgment, or a probe one below what was acknowledged."""
    if is_tap_duplicate_ack(me, segment):
        return SegmentClass.TAP_DUPLICATE
    me.note_ack(segment)
    highest = me.next if me.acked is None else max(me.next, me.acked)
    idle = me.acked is None or me.acked == highest
    if start != highest - 1 or not idle or segment.time_s - me.last_at < REORDERED_S:
        return SegmentClass.FIRST
    return SegmentClass.WINDOW_PROBE if peer.window == 0 else SegmentClass.KEEPALIVE_PROBE


def _judge_new(me: Sender, peer: Sender, segment: Segment, start: int) -> SegmentClass:
    """A segment that begins at or above the highest number seen."""
    if not me.believes(start):
        return SegmentClass.FIRST
    if segment.flags & _SYN:
        me.syn = segment.seq
    one_octet = segment.length == 1 and not segment.flags & (_SYN | _FIN)
    into_closed_window = one_octet and peer.window == 0 and me.acked == start
    me.extend(start, start + segment.space, segment)
    return SegmentClass.WINDOW_PROBE if into_closed_window else SegmentClass.FIRST


def _judge_old(me: Sender, peer: Sender, segment: Segment, start: int) -> _Verdict:
    """A segment that begins below the highest number seen."""
    if not me.believes(start):
        return _FIRST
    end = start + segment.space
    below_next = min(end, me.next)
    unseen = me.unseen(start, below_next)
    acked = me.acked is not None and end <= me.acked
    if unseen == below_next - start and not _was_sent_before(me, segment, start, end):
        me.fill(start, below_next, segment)
        if end > me.next:
            me.extend(me.next, end, segment)
        return _FIRST
    if unseen < below_next - start and is_tap_duplicate(me, peer, segment, start, end):
        me.note_copy(start, end, segment)
        return SegmentClass.TAP_DUPLICATE, None, None
    probe = _probe_class(me, peer, segment, start)
    if probe is not None:
        return probe, None, None
    trigger, waited_s = trigger_of(me, peer, segment, start, end)
    _enter_copy(me, segment, start, end, trigger)
    if segment.flags & _SYN:
        return SegmentClass.SYN_COPY, trigger, waited_s
    if segment.flags & _FIN and not segment.length:
        return SegmentClass.FIN_COPY, trigger, waited_s
    if acked:
        return SegmentClass.SPURIOUS_COPY, trigger, waited_s
    if trigger is Trigger.ACKS and me.recover_by_timeout:
        return SegmentClass.TIMEOUT_COPY, trigger, waited_s
    return _CLASS_OF[trigger], trigger, waited_s


def _was_sent_before(me: Sender, segment: Segment, start: int, end: int) -> bool:
    """Whether something that was not seen before is a copy all the same, its first sending missing in the capture."""
    if me.acked is not None and end <= me.acked:
        return segment.time_s - me.acked_at > REORDERED_S
    told = me.duplicate_acks >= 3 or (me.sacked.highest or end) > end
    hole = me.hole
    if start < me.start or hole is None:
        return told and me.acked == start
    waited_s = segment.time_s - hole.at
    later = _sent_later(segment, hole.opener)
    if later is None:
        later = waited_s > REORDERED_S
    return later and (told or (waited_s > TIMER_S and me.acked in (None, start)))


def _sent_later(segment: Segment, other: Segment) -> bool | None:
    """Whether a segment left its sender after another one, None where the headers do not tell."""
    if segment.timestamps is not None and other.timestamps is not None:
        ticks = (segment.timestamps[0] - other.timestamps[0]) & 0xFFFF_FFFF
        if ticks:
            return ticks < 0x8000_0000
    if segment.ip_id and other.ip_id:
        return (segment.ip_id - other.ip_id) & 0xFFFF < 0x8000
    return None


def _probe_class(me: Sender, peer: Sender, segment: Segment, start: int) -> SegmentClass | None:
    """Keepalive or window probe that repeats the last octet, as stacks other than Linux send them."""
    if segment.length != 1 or segment.flags & (_SYN | _FIN) or start != me.next - 1:
        return None
    if peer.window == 0 and (me.acked is None or me.acked >= start):
        return SegmentClass.WINDOW_PROBE
    idle_s = segment.time_s - max(me.last_at, peer.last_at)
    if not me.in_flight and not me.timer_copies and idle_s >= KEEPALIVE_IDLE_S:
        return SegmentClass.KEEPALIVE_PROBE
    return None


def _enter_copy(me: Sender, segment: Segment, start: int, end: int, trigger: Trigger) -> None:
    me.note_copy(start, end, segment)
    me.timed = None
    if trigger is not Trigger.ACKS:
        me.timer_copies += 1
    if trigger is Trigger.TIMEOUT or (trigger is Trigger.ACKS and me.recover is None):
        me.recover = me.next
        me.recover_by_timeout = trigger is Trigger.TIMEOUT
    me.holes.remove(start, min(end, me.next))
    me.start = min(me.start, start)
    if end > me.next:
        me.sent.append(Transmission(me.next, end, segment))
        me.next = end
    if segment.flags & _FIN and end == me.next:
        me.fin = end - 1


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    low = (inner[0] - outer[0]) & 0xFFFF_FFFF
    high = (outer[1] - inner[1]) & 0xFFFF_FFFF
    return low < 0x8000_0000 and high < 0x8000_0000
