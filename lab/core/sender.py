"""One side of a flow as a capture shows it: what it sent, what the other side acknowledged, what it was told is lost.

Numbers are linear (``seqspace.unwrap``). A capture may begin in mid-flow, miss segments or hold damaged headers, so
two rules keep the picture sane: only what was seen counts as sent, and a number far from everything seen so far moves
nothing until a second segment bears it out.
"""

from bisect import bisect_right, insort
from typing import NamedTuple

from lab.core.budget import Budget
from lab.core.segment import Segment
from lab.core.seqspace import IntervalSet, unwrap

JUMP = 1 << 20
"""Octets. A sequence number further ahead than this needs a second one that agrees, else a single damaged header would
make everything after it look old. Larger than what a capture commonly misses at a stretch."""

_KEPT_ACKED = 64
"""Acknowledged sendings that are remembered, to know a needless copy or a duplicate of the tap by them."""


_KEPT_ACKS = 64
_KEPT_COPIES = 64


class Transmission(NamedTuple):
    """A stretch of sequence space that was seen leaving."""

    start: int
    end: int
    segment: Segment


class Hole(NamedTuple):
    """When and by which segment it became known that something before it had not been seen."""

    at: float
    opener: Segment


class Sender:
    """What is known of one side's sending; changed by ``FlowClassifier`` only."""

    __slots__ = (
        "acked",
        "acked_at",
        "budget",
        "copies",
        "duplicate_acks",
        "far_ack",
        "far_seq",
        "fin",
        "hole",
        "holes",
        "last_at",
        "limit",
        "next",
        "origin",
        "recent_acks",
        "recover",
        "recover_by_timeout",
        "rtt_min_s",
        "sacked",
        "sent",
        "signal_at",
        "start",
        "syn",
        "timed",
        "timer_copies",
        "window",
    )

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.limit = 2 * _KEPT_ACKED
        """Sendings remembered before the old ones are looked through."""
        self.origin: int | None = None
        """First sequence number seen; relative numbers count from it."""
        self.start = 0
        """Lowest number seen."""
        self.next = 0
        """One past the highest number seen."""
        self.holes = IntervalSet()
        """Numbers between ``start`` and ``next`` that were never seen."""
        self.hole: Hole | None = None
        """The latest hole."""
        self.sent: list[Transmission] = []
        """First sendings, ordered by start."""
        self.copies: list[Transmission] = []
        """Latest copies and duplicates, oldest first; enter them with ``note_copy``."""
        self.recent_acks: dict[int, Segment] = {}
        """Latest segments that occupy no sequence space, by IP identification."""
        self.syn: int | None = None
        self.fin: int | None = None
        """Number that the FIN occupies."""
        self.acked: int | None = None
        """Highest cumulative acknowledgment seen from the other side."""
        self.acked_at = 0.0
        """When it rose to that."""
        self.sacked = IntervalSet()
        """What the other side reported above ``acked``."""
        self.duplicate_acks = 0
        """Since ``acked`` rose last (RFC 5681 section 2)."""
        self.signal_at = float("-inf")
        """When the other side last gave a sign of loss."""
        self.recover: int | None = None
        """``next`` at the first copy of a recovery, None outside of one (RFC 6582)."""
        self.recover_by_timeout = False
        self.timer_copies = 0
        """Copies that a timer sent since ``acked`` rose or new data left."""
        self.window: int | None = None
        """Window field of its latest segment, unscaled."""
        self.last_at = float("-inf")
        """When its latest segment was seen."""
        self.rtt_min_s: float | None = None
        """Shortest time from here to the other side and back."""
        self.timed: tuple[int, float] | None = None
        """End and instant of the one transmission that is being timed (RFC 6298 section 3, Karn's rule)."""
        self.far_seq: int | None = None
        self.far_ack: int | None = None

    @property
    def in_flight(self) -> bool:
        """Whether something seen is not acknowledged, as far as the capture shows."""
        return self.acked is None or self.acked < self.next

    def begin(self, segment: Segment) -> None:
        """Take the first segment of this side."""
        self.origin = self.start = self.next = segment.seq

    def note_ack(self, segment: Segment) -> None:
        """Remember a segment without sequence space, to know it again where it was captured twice."""
        if segment.ip_id:
            if len(self.recent_acks) >= _KEPT_ACKS:
                self.recent_acks.clear()
            self.recent_acks[segment.ip_id] = segment

    def note_copy(self, start: int, end: int, segment: Segment) -> None:
        """Remember a copy, or a duplicate of the tap."""
        self.copies.append(Transmission(start, end, segment))
        if len(self.copies) > 2 * _KEPT_COPIES:
            del self.copies[:_KEPT_COPIES]

    def extend(self, start: int, end: int, segment: Segment) -> None:
        """New sequence space left in order, or ahead of order."""
        if start > self.next:
            self.holes.add(self.next, start)
            self.hole = Hole(segment.time_s, segment)
        self.next = end
        if segment.flags & 1:
            self.fin = end - 1
        self.sent.append(Transmission(start, end, segment))
        self.timer_copies = 0
        if self.timed is None:
            self.timed = (end, segment.time_s)
        if len(self.sent) > self.limit:
            self._forget()

    def _forget(self) -> None:
        """Drop sendings that were acknowledged some time ago, and the oldest where there are still too many."""
        acknowledged = 0 if self.acked is None else bisect_right(self.sent, self.acked, key=lambda t: t.end)
        at_most = self.budget.sendings
        del self.sent[: max(0, acknowledged - _KEPT_ACKED, len(self.sent) - at_most // 2)]
        self.limit = min(at_most, max(2 * _KEPT_ACKED, 2 * len(self.sent)))

    def fill(self, start: int, end: int, segment: Segment) -> None:
        """Sequence space below ``next`` was seen for the first time."""
        if start < self.start:
            if end < self.start:
                self.holes.add(end, self.start)
            self.start = start
        self.holes.remove(start, end)
        insort(self.sent, Transmission(start, end, segment))

    def believes(self, start: int) -> bool:
        """Whether a sequence number may move the picture: near what was seen, or borne out by a second one."""
        if self.acked is None:
            low, high = self.start, self.next
        else:
            # What is in flight may be resent however much that is.
            low, high = min(self.acked, self.next), max(self.acked, self.next)
        if low - JUMP <= start <= high + JUMP:
            self.far_seq = None
            return True
        borne_out = self.far_seq is not None and 0 < start - self.far_seq <= JUMP
        self.far_seq = None if borne_out else start
        return borne_out

    def unseen(self, start: int, end: int) -> int:
        """How many numbers of an interval below ``next`` were never seen leaving."""
        below = max(0, min(end, self.start) - start)
        return below + self.holes.overlap(max(start, self.start), min(end, self.next))

    def latest(self, start: int, end: int) -> Transmission | None:
        """The latest transmission that shares sequence space with an interval."""
        best: Transmission | None = None
        for copy in reversed(self.copies):
            if copy.start < end and start < copy.end:
                best = copy
                break
        # Sendings are disjoint and sorted, so the one that holds start or begins next decides.
        n = bisect_right(self.sent, start, key=lambda t: t.start)
        for sending in self.sent[max(0, n - 1) : n + 1]:
            later = best is None or sending.segment.time_s > best.segment.time_s
            if sending.start < end and start < sending.end and later:
                best = sending
        return best

    def oldest_unacked(self) -> Transmission | None:
        """The first sending that is not fully acknowledged."""
        if self.acked is None:
            return self.sent[0] if self.sent else None
        n = bisect_right(self.sent, self.acked, key=lambda t: t.end)
        return self.sent[n] if n < len(self.sent) else None

    def acknowledge(self, segment: Segment) -> bool:
        """Take an acknowledgment from the other side.

        Args:
            segment: One of the other side's segments, with the ACK flag.

        Returns:
            Whether the cumulative acknowledgment rose.
        """
        if self.origin is None:
            # Nothing of this side was captured yet: its numbers are known from the other side only.
            return False
        old = self.acked
        ack = unwrap(segment.ack, self.next if old is None else old)
        if ack > self.next:
            if self.far_ack is None or not 0 <= ack - self.far_ack <= JUMP:
                self.far_ack = ack
                return False
        elif ack < self.start - JUMP:
            return False
        self.far_ack = None
        if old is not None and ack <= old:
            self._no_progress(segment, ack == old)
            return False
        self.progress(ack, segment.time_s)
        if segment.sack:
            self._take_sack(segment)
        return old is not None or ack > self.start

    def progress(self, ack: int, now: float) -> None:
        """The cumulative acknowledgment rose to ``ack``, linear."""
        self.far_ack = None
        self.acked = ack
        self.acked_at = now
        self.duplicate_acks = 0
        self.timer_copies = 0
        if len(self.sacked):
            self.sacked.drop_below(ack)
        if self.timed is not None and ack >= self.timed[0]:
            sample = now - self.timed[1]
            if self.rtt_min_s is None or sample < self.rtt_min_s:
                self.rtt_min_s = max(0.0, sample)
            self.timed = None
        if self.recover is not None:
            if ack >= self.recover:
                self.recover = None
                self.recover_by_timeout = False
            else:
                self.signal_at = now

    def _no_progress(self, segment: Segment, same: bool) -> None:
        if same and not segment.space and self.in_flight:
            self.duplicate_acks += 1
            self.signal_at = segment.time_s
        if segment.sack:
            self._take_sack(segment)

    def _take_sack(self, segment: Segment) -> None:
        """Enter SACK blocks above the cumulative acknowledgment (RFC 2018)."""
        acked = self.acked
        if acked is None:
            return
        for left, right in segment.sack:
            low, high = unwrap(left, acked), unwrap(right, acked)
            if acked < low < high <= self.next:
                self.sacked.add(low, high)
                self.signal_at = segment.time_s
