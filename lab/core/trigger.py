"""What made a sender copy something: a timer, the tail-loss probe, or acknowledgments that showed the loss."""

from lab.core.segment import Flag, Segment
from lab.core.segment_class import Trigger
from lab.core.sender import Sender

PROBE_WAIT_S = 0.25
"""A tail-loss probe of a lone segment waits 2 SRTT and the 200 ms minimum (RFC 8985 section 7.2; Linux
``tcp_schedule_loss_probe``), but never longer than the retransmission timer; the timer wheel adds up to 32 ms."""

BACKED_OFF = 1.5
"""A second timer copy that waited this many times as long as the first shows that the timer had doubled: both were
timeouts. After a probe the timer starts anew, undoubled."""

REACTION_S = 0.02
"""Slack, beside the measured round trip, between an acknowledgment that passes here and the copy that it causes."""

_UNKNOWN_RTT_S = 0.03


def trigger_of(me: Sender, peer: Sender, segment: Segment, start: int, end: int) -> tuple[Trigger, float]:
    """What made the sender copy, and how long its timer had been running.

    Args:
        me: The sender, before the copy is entered.
        peer: The other side.
        segment: The copy.
        start: First number that it carries, linear.
        end: One past the last.

    Returns:
        The trigger, and seconds since the latest sending of this stretch or the latest progress, whichever is later.
    """
    now = segment.time_s
    latest = me.latest(start, start + 1)  # the timer is the head's
    sent_at = min(me.last_at, now) if latest is None else latest.segment.time_s
    progress_at = me.acked_at if me.acked is not None and me.acked <= start else sent_at
    waited_s = now - max(sent_at, progress_at)
    if segment.flags & Flag.SYN.value:
        return Trigger.TIMEOUT, waited_s
    if _acks_told(me, peer, now, sent_at, end):
        return Trigger.ACKS, waited_s
    if me.timer_copies or end < me.next:
        return Trigger.TIMEOUT, waited_s
    if me.acked is not None and start > me.acked:
        # The tail although its head is open: a timeout would begin with the head.
        return Trigger.PROBE, waited_s
    limit_s = PROBE_WAIT_S + 2 * (me.rtt_min_s or 0.0)
    return (Trigger.PROBE if waited_s < limit_s else Trigger.TIMEOUT), waited_s


def _acks_told(me: Sender, peer: Sender, now: float, sent_at: float, end: int) -> bool:
    """Whether an acknowledgment that showed the loss had just reached the sender."""
    near_s = _UNKNOWN_RTT_S if peer.rtt_min_s is None else peer.rtt_min_s
    # RACK waits a quarter of the whole round trip for reordered segments (RFC 8985 section 6.2).
    reaction_s = REACTION_S + near_s + (near_s + (me.rtt_min_s or 0.0)) / 4
    if me.signal_at < sent_at or now - me.signal_at > reaction_s:
        return False
    told_by_sack = me.sacked.highest is not None and me.sacked.highest > end
    return told_by_sack or me.duplicate_acks >= 3 or me.recover is not None
