"""What a segment is to its sender, and what made the sender copy it."""

import enum
from typing import NamedTuple

from lab.core.flow import Direction
from lab.core.segment import Segment


class SegmentClass(enum.Enum):
    """What a segment is to its sender."""

    FIRST = "first"
    """Carries nothing that was seen before: new data, an acknowledgment, a late arrival."""

    TIMEOUT_COPY = "timeout-copy"
    """Resent when the retransmission timer expired, or in the recovery that this began."""

    TAIL_LOSS_PROBE = "tail-loss-probe"
    """The tail resent by the probe timer (RFC 8985 section 7). A probe that carries new data is ``FIRST``."""

    FAST_COPY = "fast-copy"
    """Resent because acknowledgments showed the loss."""

    SPURIOUS_COPY = "spurious-copy"
    """Needless: all of it had been acknowledged already, as seen here, or a D-SACK says that it came twice."""

    KEEPALIVE_PROBE = "keepalive-probe"
    """Nothing new, at the last acknowledged number, while nothing is in flight (RFC 9293 section 3.8.4)."""

    WINDOW_PROBE = "window-probe"
    """The same, or one octet more, against a closed window (RFC 9293 section 3.8.6.1)."""

    SYN_COPY = "syn-copy"
    """A SYN or SYN/ACK again."""

    FIN_COPY = "fin-copy"
    """A FIN again, without data."""

    TAP_DUPLICATE = "tap-duplicate"
    """The same packet captured twice; nobody sent it again."""

    @property
    def is_copy(self) -> bool:
        """Whether the sender put octets, a SYN or a FIN on the wire again."""
        return self in _COPIES


_COPIES = frozenset(
    {
        SegmentClass.TIMEOUT_COPY,
        SegmentClass.TAIL_LOSS_PROBE,
        SegmentClass.FAST_COPY,
        SegmentClass.SPURIOUS_COPY,
        SegmentClass.SYN_COPY,
        SegmentClass.FIN_COPY,
    }
)


class Trigger(enum.Enum):
    """What made the sender copy; a needless copy has one too."""

    TIMEOUT = "timeout"
    """The retransmission timer."""

    PROBE = "probe"
    """The tail-loss probe timer."""

    ACKS = "acks"
    """Acknowledgments that arrived: fast retransmit, or recovery after a timeout."""


class Classified(NamedTuple):
    """A segment and what it is. A ``NamedTuple`` for the reason that ``Segment`` is one."""

    segment: Segment
    direction: Direction
    segment_class: SegmentClass
    seq: int
    """Sequence number relative to the flow's first in this direction, as seen; no wraps."""

    trigger: Trigger | None
    """None unless the sender resent something."""

    number: int
    """Position among the flow's segments, from 0."""

    waited_s: float | None = None
    """Of a copy: seconds since the sender's timer was set, so since the latest sending or progress."""

    @property
    def end(self) -> int:
        """One past the last relative sequence number that the segment occupies."""
        return self.seq + self.segment.space

    @property
    def needless(self) -> bool:
        """Whether it is known that the other side had all of it."""
        return self.segment_class is SegmentClass.SPURIOUS_COPY
