"""pcapng files (IETF draft-ietf-opsawg-pcapng), written as packets come and readable at every moment.

One section, one interface per file. Packets go down undissected; every write ends on a block boundary, so that a
reader, or a killed writer, finds whole packets only.
"""

import functools
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LINKTYPE_ETHERNET = 1

_SECTION_HEADER, _INTERFACE_DESCRIPTION, _INTERFACE_STATISTICS, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 5, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_VERSION = 1, 0
_UNKNOWN_LENGTH = -1
"""Of a section that is still being written."""

_NANOSECONDS = 9
"""``if_tsresol``: the negative power of ten that a tick lasts."""

_END = 0
_SHB_HARDWARE, _SHB_OS, _SHB_USERAPPL = 2, 3, 4
_IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL, _IF_FILTER, _IF_OS = 2, 3, 9, 11, 12
_ISB_STARTTIME, _ISB_ENDTIME, _ISB_IFRECV, _ISB_IFDROP, _ISB_OSDROP, _ISB_USRDELIV = 2, 3, 4, 5, 7, 8
_EPB_FLAGS = 2
_EPB_INBOUND, _EPB_OUTBOUND = 1, 2

_EPB = struct.Struct("=7I")
"""Type, total length, interface, timestamp high and low, captured and original length."""


Packet = tuple[int, int, bool, bytes]
"""One packet as the kernel handed it over, a plain tuple because a loaded link makes 100,000 of them a second:

- nanoseconds since the Unix epoch;
- octets on the wire, more than there is data where the capture cut it short;
- whether the capturing machine sent it;
- the data, from the link layer's header on.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the packets of a file come from."""

    interface: str
    """Name of the network interface."""

    description: str
    """What it leads to."""

    filter_expression: str
    """pcap-filter(7); empty for none."""

    hardware: str
    """Machine architecture."""

    system: str
    """Operating system and kernel release."""

    application: str
    """Which program writes."""

    link_type: int = LINKTYPE_ETHERNET


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a capture counted."""

    started_ns: int
    """Nanoseconds since the Unix epoch."""

    ended_ns: int
    received: int
    """Packets that passed the filter, dropped ones included."""

    dropped: int
    """Packets that the kernel had no buffer for."""


class PcapngWriter:
    """A file with one interface.

    Args:
        path: Overwritten where it exists.
        source: Goes into the headers, which are on disk when this returns.

    Raises:
        OSError: the file cannot be made or written.
    """

    def __init__(self, path: Path, source: Source) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._size = 0
        self._packets = 0
        try:
            self._append(section_header(source) + interface_description(source))
        except OSError:
            self.close()
            raise

    @property
    def packets(self) -> int:
        """How many packets are in the file."""
        return self._packets

    @property
    def octets(self) -> int:
        """How long the file is."""
        return self._size

    def write(self, packets: Iterable[Packet]) -> None:
        """Append packets, in one write.

        Raises:
            OSError: the disk took them in part or not at all; the file ends where it ended before.
        """
        parts: list[bytes] = []
        pack = _EPB.pack
        for time_ns, length, outgoing, data in packets:
            caught = len(data)
            total, trailer = _trailer(caught, outgoing)
            head = pack(_ENHANCED_PACKET, total, 0, time_ns >> 32, time_ns & 0xFFFFFFFF, caught, length)
            parts += (head, data, trailer)
        self._append(b"".join(parts))
        self._packets += len(parts) // 3

    def write_statistics(self, statistics: Statistics) -> None:
        """Append the counters; by convention the last block of a complete capture.

        Raises:
            OSError: as for ``write``.
        """
        self._append(interface_statistics(statistics))

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
            raise
        self._size += len(data)


def section_header(source: Source) -> bytes:
    """The block that begins a file."""
    options = [
        (_SHB_HARDWARE, source.hardware.encode()),
        (_SHB_OS, source.system.encode()),
        (_SHB_USERAPPL, source.application.encode()),
    ]
    return _block(_SECTION_HEADER, struct.pack("=IHHq", _BYTE_ORDER_MAGIC, *_VERSION, _UNKNOWN_LENGTH), options)


def interface_description(source: Source) -> bytes:
    """The block that describes the file's only interface; timestamps count nanoseconds, packets are never cut short."""
    options = [
        (_IF_NAME, source.interface.encode()),
        (_IF_DESCRIPTION, source.description.encode()),
        (_IF_TSRESOL, bytes([_NANOSECONDS])),
        (_IF_OS, source.system.encode()),
    ]
    if source.filter_expression:
        # The first octet says which language it is: 0 is libpcap's.
        options.append((_IF_FILTER, b"\0" + source.filter_expression.encode()))
    return _block(_INTERFACE_DESCRIPTION, struct.pack("=HHI", source.link_type, 0, 0), options)


def interface_statistics(statistics: Statistics) -> bytes:
    """The block with the counters.

    Drops stand twice: where the standard wants those for want of buffer (``isb_osdrop``), and where dumpcap writes and
    Wireshark shows them (``isb_ifdrop``).
    """
    delivered = statistics.received - statistics.dropped
    options = [
        (_ISB_STARTTIME, _timestamp(statistics.started_ns)),
        (_ISB_ENDTIME, _timestamp(statistics.ended_ns)),
        (_ISB_IFRECV, struct.pack("=Q", statistics.received)),
        (_ISB_IFDROP, struct.pack("=Q", statistics.dropped)),
        (_ISB_OSDROP, struct.pack("=Q", statistics.dropped)),
        (_ISB_USRDELIV, struct.pack("=Q", delivered)),
    ]
    return _block(_INTERFACE_STATISTICS, struct.pack("=I", 0) + _timestamp(statistics.ended_ns), options)


def _block(kind: int, body: bytes, options: list[tuple[int, bytes]]) -> bytes:
    body += b"".join(_option(code, value) for code, value in options) + _option(_END, b"")
    total = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + total + body + total


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)


def _timestamp(time_ns: int) -> bytes:
    return struct.pack("=II", time_ns >> 32, time_ns & 0xFFFFFFFF)


@functools.lru_cache(maxsize=8192)
def _trailer(caught: int, outgoing: bool) -> tuple[int, bytes]:
    """Length of an enhanced packet block with so much data, and all of it that comes after the data."""
    flags = _option(_EPB_FLAGS, struct.pack("=I", _EPB_OUTBOUND if outgoing else _EPB_INBOUND)) + _option(_END, b"")
    padding = bytes(-caught % 4)
    total = _EPB.size + caught + len(padding) + len(flags) + 4
    return total, padding + flags + struct.pack("=I", total)
