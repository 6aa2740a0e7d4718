"""One segment past the node's own TCP: what shows on an idle flow that the hole is where it should be and only there.

Its checksum is wrong. Nobody between the two ends looks at that, and where it comes through, the receiver drops it
without an answer (RFC 9293 section 3.1): nothing that is sent to see the path changes what the ends know.
"""

import socket
import struct

from lab.core.flow import Endpoint
from lab.core.segment import Flag

_HEADER = struct.Struct("!HHIIBBHHH")
_DATA_OFFSET = 5 << 4
_CHECKSUM_OFFSET = 16
_SPOILT = 1
"""Put over the checksum: another value by one, whatever the right one is."""

_PSEUDO_TAIL = {socket.AF_INET: struct.Struct("!BBH"), socket.AF_INET6: struct.Struct("!I3xB")}


def nudge(source: Endpoint, destination: Endpoint) -> None:
    """Send an acknowledgment with sequence number 0 that no receiver takes.

    Args:
        source: An address of this node and the flow's port.
        destination: The other end.

    Raises:
        OSError: no raw socket is allowed here, or no route leads there.
    """
    family = socket.AF_INET6 if ":" in source.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP) as raw:
        raw.bind((source.address, 0))
        raw.sendto(acknowledgment(source, destination, family), (destination.address, 0))


def acknowledgment(source: Endpoint, destination: Endpoint, family: int) -> bytes:
    """The TCP header alone, its checksum wrong."""
    header = _HEADER.pack(source.port, destination.port, 0, 0, _DATA_OFFSET, Flag.ACK, 0, 0, 0)
    ends = socket.inet_pton(family, source.address) + socket.inet_pton(family, destination.address)
    if family == socket.AF_INET:
        tail = _PSEUDO_TAIL[socket.AF_INET].pack(0, socket.IPPROTO_TCP, len(header))
    else:
        tail = _PSEUDO_TAIL[socket.AF_INET6].pack(len(header), socket.IPPROTO_TCP)
    checksum = _ones_complement(ends + tail + header)
    return header[:_CHECKSUM_OFFSET] + struct.pack("!H", checksum ^ _SPOILT) + header[_CHECKSUM_OFFSET + 2 :]


def _ones_complement(octets: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total
