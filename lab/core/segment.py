"""A TCP segment as the core sees it: numbers only, whatever captured it.

A ``NamedTuple`` rather than a dataclass, because ``lab explain`` makes a million of them.
"""

import enum
from typing import NamedTuple

from lab.core.flow import Endpoint


class Flag(enum.IntFlag):
    """TCP header flags (RFC 9293 section 3.1)."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    PSH = 0x08
    ACK = 0x10
    URG = 0x20


class Segment(NamedTuple):
    """One TCP segment seen at one vantage point."""

    time_s: float
    """Seconds; Unix time in captures, any origin in tests."""

    source: Endpoint
    destination: Endpoint

    seq: int
    """Sequence number, 0 to 2**32 - 1."""

    ack: int
    """Acknowledgment number; meaningful with the ACK flag only."""

    flags: int
    """Bits of ``Flag``; a plain int, since making an ``IntFlag`` costs more than reading the packet."""

    window: int
    """Window field as sent, unscaled."""

    length: int
    """Payload octets, from the IP length, so that padding and snapped captures do not lie."""

    sack: tuple[tuple[int, int], ...] = ()
    """SACK blocks, left and right edges (RFC 2018; a first one at or below ``ack`` is a D-SACK, RFC 2883)."""

    timestamps: tuple[int, int] | None = None
    """TSval and TSecr (RFC 7323)."""

    ip_id: int | None = None
    """IPv4 identification; tells a packet captured twice from one sent twice. None for IPv6."""

    ttl: int = 0
    """Time to live, or hop limit."""

    @property
    def space(self) -> int:
        """Sequence space that the segment occupies: payload, plus one each for SYN and FIN."""
        return self.length + (self.flags & 1) + ((self.flags >> 1) & 1)
