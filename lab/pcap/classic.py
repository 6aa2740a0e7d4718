"""Classic pcap files, microseconds and nanoseconds, both byte orders (draft-ietf-opsawg-pcap)."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from lab.pcap.frame import MAX_FRAME, DamagedCapture, Frame, read_exactly

MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
"""First four octets to byte order and length of a tick in seconds."""

_RAW_ALIASES = {12: 101, 14: 101}
"""DLT_RAW as BSDs number it."""


def frames(file: BinaryIO, magic: bytes) -> Iterator[Frame]:
    """The frames behind a magic number that was read already.

    Raises:
        DamagedCapture: the file ends inside a record, or a record is longer than any frame can be.
    """
    order, tick_s = MAGICS[magic]
    # The upper bits of the last field tell about frame check sequences.
    link_type = struct.unpack(order + "16xI", read_exactly(file, 20))[0] & 0xFFFF
    link_type = _RAW_ALIASES.get(link_type, link_type)
    record = struct.Struct(order + "IIII")
    unpack, size, read = record.unpack, record.size, file.read
    while header := read(size):
        if len(header) < size:
            raise DamagedCapture("is cut off inside a record")
        seconds, ticks, captured, length = unpack(header)
        if captured > MAX_FRAME:
            raise DamagedCapture(f"has a record of {captured} octets, longer than any frame")
        data = read(captured)
        if len(data) < captured:
            raise DamagedCapture("is cut off inside a record")
        yield seconds + ticks * tick_s, link_type, data, length
