"""Link layers: where in a frame the IP packet begins (tcpdump.org/linktypes.html)."""

from typing import NamedTuple

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_IPV6 = 0x86DD

NULL, ETHERNET, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2 = 0, 1, 101, 108, 113, 228, 229, 276
KNOWN = frozenset({NULL, ETHERNET, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2})
"""Link types that this module reads."""

_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
_PPPOE_SESSION = 0x8864
_PPP = {0x0021: ETHERTYPE_IPV4, 0x0057: ETHERTYPE_IPV6}
_MAX_TAGS = 8

_AF_INET = 2
_AF_INET6 = frozenset({10, 24, 28, 30})
"""Linux, NetBSD and OpenBSD, FreeBSD, macOS."""


class Payload(NamedTuple):
    """Where a packet begins."""

    offset: int
    ethertype: int
    end: int | None = None
    """Offset behind its last octet, where the link layer says so."""


def payload(link_type: int, frame: bytes) -> Payload | None:
    """The packet in a frame of a known link type; None where the frame is too short or of an unknown kind."""
    if link_type == ETHERNET:
        return _behind_ethertype(frame, 12, 14)
    if link_type == LINUX_SLL:
        return _behind_ethertype(frame, 14, 16)
    if link_type == LINUX_SLL2:
        return _behind_ethertype(frame, 0, 20)
    if link_type in {NULL, LOOP}:
        return _behind_family(frame)
    return _by_version(frame, 0)


def _behind_ethertype(frame: bytes, field: int, at: int) -> Payload | None:
    """Follow VLAN tags and PPPoE to the packet, from an EtherType field and what it speaks of."""
    if len(frame) < at:
        return None
    ethertype = frame[field] << 8 | frame[field + 1]
    for _ in range(_MAX_TAGS):
        if ethertype not in _VLAN_TAGS:
            break
        if len(frame) < at + 4:
            return None
        ethertype = frame[at + 2] << 8 | frame[at + 3]
        at += 4
    if ethertype == _PPPOE_SESSION:
        if len(frame) < at + 8:
            return None
        size, protocol = frame[at + 4] << 8 | frame[at + 5], frame[at + 6] << 8 | frame[at + 7]
        return Payload(at + 8, _PPP.get(protocol, protocol), at + 6 + size)
    return Payload(at, ethertype)


def _behind_family(frame: bytes) -> Payload | None:
    """BSD loopback: an address family in the byte order of whoever captured."""
    if len(frame) < 4:
        return None
    family = max(frame[0], frame[3])
    if family == _AF_INET:
        return Payload(4, ETHERTYPE_IPV4)
    return Payload(4, ETHERTYPE_IPV6) if family in _AF_INET6 else None


def _by_version(frame: bytes, at: int) -> Payload | None:
    version = frame[at] >> 4 if len(frame) > at else 0
    if version == 4:
        return Payload(at, ETHERTYPE_IPV4)
    return Payload(at, ETHERTYPE_IPV6) if version == 6 else None
