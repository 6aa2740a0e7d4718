"""Telling a packet that was captured twice from one that was sent twice.

A mirror port, two VLANs of one path or the two sides of a router show every packet twice, microseconds to tens of
milliseconds apart. A sender's copy is a new packet: new IP identification, new timestamp, and not before a timer or
an acknowledgment could ask for it.
"""

from lab.core.segment import Segment
from lab.core.sender import Sender

SAME_PACKET_S = 0.1
"""Identical headers within this are one packet. Some senders reuse an IP identification for copies, but no timer fires
earlier: 200 ms is the usual least retransmission timeout, half of it allows for jitter on the way."""

SAME_BURST_S = 0.001
"""Within this, with nothing heard from the other side in between, nothing can have asked for a copy: timers move in
jiffies of 1 ms or more."""


def is_tap_duplicate(me: Sender, peer: Sender, segment: Segment, start: int, end: int) -> bool:
    """Whether a segment with sequence space, seen before, is the same packet again."""
    earlier = me.latest(start, end)
    if earlier is None or earlier.start != start or earlier.segment.length != segment.length:
        return False
    before = earlier.segment
    apart_s = segment.time_s - before.time_s
    if apart_s < SAME_BURST_S and peer.last_at < before.time_s:
        return True
    if apart_s >= SAME_PACKET_S or not _same_headers(segment, before):
        return False
    if segment.ip_id:
        return True
    told = me.duplicate_acks >= 3 or len(me.sacked) > 0
    return segment.timestamps is not None and not told


def is_tap_duplicate_ack(me: Sender, segment: Segment) -> bool:
    """Whether a segment without sequence space is the same packet again; needs an IP identification to be told."""
    if not segment.ip_id:
        # Duplicate acknowledgments are alike and come in bursts: nothing tells them from one that was captured twice.
        return False
    before = me.recent_acks.get(segment.ip_id)
    return before is not None and abs(segment.time_s - before.time_s) < SAME_PACKET_S and _same_headers(segment, before)


def _same_headers(one: Segment, other: Segment) -> bool:
    """Everything that a new packet of the same sender would not repeat; hop limits differ across a router."""
    return (
        one.seq == other.seq
        and one.ack == other.ack
        and one.flags == other.flags
        and one.window == other.window
        and one.length == other.length
        and one.ip_id == other.ip_id
        and one.timestamps == other.timestamps
        and one.sack == other.sack
    )
