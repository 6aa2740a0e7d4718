"""What one end put on the wire after the cut, read from the capture on its own side of the hole."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.core.flow import Direction
from lab.core.retransmission import Classified, SegmentClass
from lab.core.segment import Flag

PROBES = frozenset({SegmentClass.KEEPALIVE_PROBE, SegmentClass.WINDOW_PROBE})


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one end put on the wire after the cut; times on CLOCK_MONOTONIC."""

    lost_at: float | None
    """When the first segment left that no acknowledgment came back for: what a kernel's timers count from."""

    heard_at: float | None
    """When this end last received a packet of the flow."""

    copies: tuple[Classified, ...]
    """Retransmissions from the cut on, and probes from the last packet received or the cut on, in order.

    A peer answers no more than two probes a second, so the last one before the cut may have been passed over: its
    sender counts it with those that are lost.
    """

    reset_at: float | None
    """When this end sent a RST into the hole, as a keepalive death does."""

    ended_at: float | None
    """When this end first sent a FIN or RST after the cut, as a close does."""

    told_at: float | None
    """When a FIN or RST of the other side first reached this end after the cut, by the direction that was left open."""

    recovered_at: float | None
    """When, after the heal, the other side first acknowledged what had been lost."""

    lost_length: int = 0
    """Payload of what was lost first, bytes; 0 where that was a FIN alone, or nothing."""

    @property
    def fin_at(self) -> float | None:
        """When this end first sent a FIN into the hole; None where it sent none, or a RST before."""
        return None if self.ended_at == self.reset_at else self.ended_at


def read_traffic(
    near: Sequence[Classified], direction: Direction, cut_at: float, healed_at: float | None, until: float
) -> Traffic:
    """One end's traffic, from the capture on its own side of the hole.

    Args:
        near: Every segment of the flow in that capture, both directions; times on CLOCK_MONOTONIC.
        direction: The way that this end sends in.
        cut_at: Just before the commit.
        healed_at: Just before the healing commit, or None.
        until: When the counters were read; what came later belongs to the tidying up.
    """
    mine = [c for c in near if c.direction is direction and c.segment.time_s <= until]
    heard = [c for c in near if c.direction is direction.opposite and c.segment.time_s <= until]
    dark_until = until if healed_at is None else healed_at
    acked = _highest_ack(c for c in heard if c.segment.time_s < dark_until)
    dark = [c for c in mine if c.segment.time_s < dark_until]
    lost = next((c for c in dark if _carries(c) and not _acknowledged(c, acked)), None)
    heard_times = [c.segment.time_s for c in heard if c.segment.time_s < dark_until]
    unanswered_from = min(cut_at, heard_times[-1]) if heard_times else cut_at
    copies = tuple(
        c
        for c in mine
        if (c.segment_class.is_copy and c.segment.time_s >= cut_at)
        or (c.segment_class in PROBES and c.segment.time_s >= unanswered_from)
    )
    recovered = None
    if healed_at is not None and lost is not None:
        recovered = next(
            (c.segment.time_s for c in heard if c.segment.time_s >= cut_at and _covers(c, lost)),
            None,
        )

    def first_with(flags: int) -> float | None:
        return next((c.segment.time_s for c in dark if c.segment.time_s >= cut_at and c.segment.flags & flags), None)

    return Traffic(
        lost_at=None if lost is None else lost.segment.time_s,
        heard_at=heard_times[-1] if heard_times else None,
        copies=copies,
        reset_at=first_with(Flag.RST),
        ended_at=first_with(Flag.RST | Flag.FIN),
        told_at=next((c.segment.time_s for c in heard if c.segment.time_s >= cut_at and _ends(c)), None),
        recovered_at=recovered,
        lost_length=0 if lost is None else lost.segment.length,
    )


def _ends(classified: Classified) -> bool:
    return bool(classified.segment.flags & (Flag.RST | Flag.FIN))


def _carries(classified: Classified) -> bool:
    return classified.segment.space > 0 and classified.segment_class is SegmentClass.FIRST


def _highest_ack(heard: Iterable[Classified]) -> int | None:
    acked: int | None = None
    for c in heard:
        if c.segment.flags & Flag.ACK and (acked is None or 0 < (c.segment.ack - acked) & 0xFFFF_FFFF < 0x8000_0000):
            acked = c.segment.ack
    return acked


def _acknowledged(sent: Classified, acked: int | None) -> bool:
    end = sent.segment.seq + sent.segment.space
    return acked is not None and (acked - end) & 0xFFFF_FFFF < 0x8000_0000


def _covers(heard: Classified, lost: Classified) -> bool:
    return bool(heard.segment.flags & Flag.ACK) and _acknowledged(lost, heard.segment.ack)
