"""IP packets to segments: IPv4 with options, IPv6 with extension headers, TCP options that the lab uses, ICMP quotes.

Lengths come from the IP header, so that Ethernet padding and snapped captures do not lie. The length on the wire counts
where an offloaded frame has none (0), and bounds a damaged one.
"""

import struct
from collections import Counter
from socket import AF_INET6, inet_ntop

from lab.core.flow import Endpoint
from lab.core.icmp import IcmpMessage
from lab.core.segment import Segment
from lab.pcap.link import ETHERTYPE_IPV4, ETHERTYPE_IPV6, Payload

_TCP, _ICMP, _ICMP6, _UDP = 6, 1, 58, 17
_NAMES = {_ICMP: "ICMP", _UDP: "UDP", _ICMP6: "ICMPv6", 2: "IGMP", 47: "GRE", 50: "ESP", 132: "SCTP", 4: "IP in IP"}
_ETHERTYPES = {0x0806: "ARP", 0x8847: "MPLS", 0x88CC: "LLDP"}
_EXTENSIONS = frozenset({0, 43, 60, 135, 139, 140})
"""IPv6 extension headers whose second octet counts 8-octet units (RFC 8200 section 4, RFC 7045)."""

_FRAGMENT, _AUTHENTICATION = 44, 51
_MAX_EXTENSIONS = 16

_ICMP4_QUOTING = frozenset({3, 4, 5, 11, 12})
_ICMP6_QUOTING = frozenset({1, 2, 3, 4})

_PLAIN = struct.Struct(">12xHBxHHHBB2x12sIIBBH")
"""Ethernet, IPv4 without options and TCP in one go; the 12 octets are both addresses and both ports."""

_IPV4 = struct.Struct(">BxHHHBB2x")
_TCP_FIXED = struct.Struct(">4xIIBBH")
_TIMESTAMPS = struct.Struct(">II")
_ONLY_TIMESTAMPS = b"\x01\x01\x08\x0a"
_MAX_CACHED = 1 << 16


class Decoder:
    """Turns packets into segments, and counts what was something else."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """What was not a TCP segment, by name."""
        self.fragments = 0
        """Later fragments of packets, whose ports are in the first one."""
        self.malformed = 0
        """Packets that contradict themselves, or of which too little was captured."""
        self.segments = 0
        self._ends: dict[bytes, tuple[Endpoint, Endpoint]] = {}

    def plain_ethernet(self, time_s: float, frame: bytes, length: int) -> Segment | None:
        """The segment of the most common kind of frame, at a third of the cost; None where ``decode`` must look."""
        if len(frame) < 54:
            return None
        ethertype, first, total, ip_id, fragment, ttl, protocol, ends, seq, ack, offset, flags, window = (
            _PLAIN.unpack_from(frame)
        )
        if ethertype != ETHERTYPE_IPV4 or first != 0x45 or protocol != _TCP or fragment & 0x1FFF:
            return None
        header = (offset >> 4) * 4
        payload = total - 20 - header
        if payload < 0 or header < 20 or total + 14 > length:
            return None
        pair = self._ends.get(ends) or self._endpoints(ends[:8], ends[8:])
        sack: tuple[tuple[int, int], ...] = ()
        timestamps: tuple[int, int] | None = None
        if header > 20:
            if header == 32 and frame[54:58] == _ONLY_TIMESTAMPS and len(frame) >= 66:
                timestamps = _TIMESTAMPS.unpack_from(frame, 58)
            else:
                sack, timestamps = _options(frame[54 : 34 + header])
        self.segments += 1
        return Segment(time_s, pair[0], pair[1], seq, ack, flags, window, payload, sack, timestamps, ip_id, ttl)

    def decode(self, time_s: float, frame: bytes, length: int, at: Payload | None) -> Segment | IcmpMessage | None:
        """The segment or ICMP message in a frame; None where there is none.

        Args:
            time_s: When it was captured.
            frame: What was captured of it.
            length: Octets on the wire.
            at: Where the packet begins, from ``link.payload``.
        """
        if at is None:
            self.malformed += 1
            return None
        if at.end is not None:
            length = min(length, at.end)
        if at.ethertype == ETHERTYPE_IPV4:
            return self._ipv4(time_s, frame, length, at.offset)
        if at.ethertype == ETHERTYPE_IPV6:
            return self._ipv6(time_s, frame, length, at.offset)
        self.seen[_ETHERTYPES.get(at.ethertype, f"EtherType 0x{at.ethertype:04x}")] += 1
        return None

    def _ipv4(self, time_s: float, frame: bytes, length: int, at: int) -> Segment | IcmpMessage | None:
        if len(frame) < at + 20:
            self.malformed += 1
            return None
        first, total, ip_id, fragment, ttl, protocol = _IPV4.unpack_from(frame, at)
        header = (first & 0xF) * 4
        if first >> 4 != 4 or header < 20:
            self.malformed += 1
            return None
        if fragment & 0x1FFF:
            self.fragments += 1
            return None
        payload = min(total or length - at, length - at) - header
        addresses = frame[at + 12 : at + 20]
        if protocol == _TCP:
            return self._tcp(time_s, frame, at + header, payload, addresses, ip_id, ttl)
        self.seen[_NAMES.get(protocol, f"IP protocol {protocol}")] += 1
        if protocol == _ICMP:
            return self._icmp(time_s, frame, at + header, addresses)
        return None

    def _ipv6(self, time_s: float, frame: bytes, length: int, at: int) -> Segment | IcmpMessage | None:
        if len(frame) < at + 40 or frame[at] >> 4 != 6:
            self.malformed += 1
            return None
        on_wire = length - at - 40
        payload = min(frame[at + 4] << 8 | frame[at + 5] or on_wire, on_wire)
        protocol, hops = frame[at + 6], frame[at + 7]
        addresses = frame[at + 8 : at + 40]
        found = self._behind_extensions(frame, at + 40, protocol)
        if found is None:
            return None
        transport, protocol = found
        payload -= transport - at - 40
        if protocol == _TCP:
            return self._tcp(time_s, frame, transport, payload, addresses, None, hops)
        self.seen[_NAMES.get(protocol, f"IP protocol {protocol}")] += 1
        if protocol == _ICMP6:
            return self._icmp(time_s, frame, transport, addresses)
        return None

    def _behind_extensions(self, frame: bytes, at: int, protocol: int) -> tuple[int, int] | None:
        for _ in range(_MAX_EXTENSIONS):
            if protocol not in _EXTENSIONS and protocol not in {_FRAGMENT, _AUTHENTICATION}:
                return at, protocol
            if len(frame) < at + 8:
                self.malformed += 1
                return None
            if protocol == _FRAGMENT:
                if (frame[at + 2] << 8 | frame[at + 3]) >> 3:
                    self.fragments += 1
                    return None
                size = 8
            elif protocol == _AUTHENTICATION:
                size = (frame[at + 1] + 2) * 4
            else:
                size = (frame[at + 1] + 1) * 8
            protocol = frame[at]
            at += size
        self.malformed += 1
        return None

    def _tcp(
        self, time_s: float, frame: bytes, at: int, payload: int, addresses: bytes, ip_id: int | None, ttl: int
    ) -> Segment | None:
        if len(frame) < at + 16:
            self.malformed += 1
            return None
        seq, ack, offset, flags, window = _TCP_FIXED.unpack_from(frame, at)
        header = (offset >> 4) * 4
        if header < 20 or header > payload:
            self.malformed += 1
            return None
        source, destination = self._endpoints(addresses, frame[at : at + 4])
        sack: tuple[tuple[int, int], ...] = ()
        timestamps: tuple[int, int] | None = None
        if header > 20:
            sack, timestamps = _options(frame[at + 20 : at + header])
        self.segments += 1
        return Segment(
            time_s, source, destination, seq, ack, flags, window, payload - header, sack, timestamps, ip_id, ttl
        )

    def _icmp(self, time_s: float, frame: bytes, at: int, addresses: bytes) -> IcmpMessage | None:
        """The message, where it quotes a TCP segment."""
        ipv6 = len(addresses) == 32
        if len(frame) < at + 8 or frame[at] not in (_ICMP6_QUOTING if ipv6 else _ICMP4_QUOTING):
            return None
        quote = at + 8
        if len(frame) < quote + (40 if ipv6 else 20):
            return None
        if ipv6:
            quoted, protocol, transport = frame[quote + 8 : quote + 40], frame[quote + 6], quote + 40
        else:
            quoted, protocol = frame[quote + 12 : quote + 20], frame[quote + 9]
            transport = quote + (frame[quote] & 0xF) * 4
        if protocol != _TCP or len(frame) < transport + 8:
            return None
        source, destination = self._endpoints(quoted, frame[transport : transport + 4])
        seq = int.from_bytes(frame[transport + 4 : transport + 8], "big")
        sender = _address(addresses[: len(addresses) // 2])
        return IcmpMessage(time_s, sender, ipv6, frame[at], frame[at + 1], source, destination, seq)

    def _endpoints(self, addresses: bytes, ports: bytes) -> tuple[Endpoint, Endpoint]:
        key = addresses + ports
        ends = self._ends.get(key)
        if ends is None:
            half = len(addresses) // 2
            ends = (
                Endpoint(_address(addresses[:half]), ports[0] << 8 | ports[1]),
                Endpoint(_address(addresses[half:]), ports[2] << 8 | ports[3]),
            )
            if len(self._ends) >= _MAX_CACHED:
                self._ends.clear()
            self._ends[key] = ends
        return ends


def _address(octets: bytes) -> str:
    if len(octets) == 4:
        return f"{octets[0]}.{octets[1]}.{octets[2]}.{octets[3]}"
    return inet_ntop(AF_INET6, octets)


def _options(options: bytes) -> tuple[tuple[tuple[int, int], ...], tuple[int, int] | None]:
    """SACK blocks and timestamps (RFC 2018, RFC 7323); whatever is damaged ends the list."""
    sack: tuple[tuple[int, int], ...] = ()
    timestamps = None
    at, end = 0, len(options)
    while at < end:
        kind = options[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        size = options[at + 1] if at + 1 < end else 0
        if size < 2 or at + size > end:
            break
        if kind == 8 and size == 10:
            timestamps = _TIMESTAMPS.unpack_from(options, at + 2)
        elif kind == 5 and (size - 2) % 8 == 0:
            sack = tuple(_TIMESTAMPS.unpack_from(options, n) for n in range(at + 2, at + size, 8))
        at += size
    return sack, timestamps
