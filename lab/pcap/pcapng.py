"""pcapng files: sections, interfaces and packet blocks; other blocks are passed over (draft-ietf-opsawg-pcapng)."""

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from lab.pcap.frame import MAX_FRAME, DamagedCapture, Frame, read_exactly, skip

SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"

_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_MAX_BLOCK = MAX_FRAME + (1 << 16)
"""A packet block holds a frame and its options."""

_MAX_INTERFACES = 4096
_END_OF_OPTIONS, _TSRESOL, _TSOFFSET = 0, 9, 14


class _Interface(NamedTuple):
    link_type: int
    snap_length: int
    tick_s: float
    offset_s: int


def frames(file: BinaryIO) -> Iterator[Frame]:
    """The frames of all sections; the first section's magic number was read already.

    Raises:
        DamagedCapture: the file ends inside a block, or a block contradicts itself.
    """
    order = _read_section(file)
    interfaces: list[_Interface] = []
    while head := file.read(8):
        if len(head) < 8:
            raise DamagedCapture("is cut off inside a block")
        if head[:4] == SECTION_MAGIC:
            order = _read_section(file, head[4:])
            interfaces = []
            continue
        kind, total = struct.unpack(order + "II", head)
        if total < 12 or total % 4:
            raise DamagedCapture(f"has a block of {total} octets")
        if kind not in {_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET}:
            skip(file, total - 8)
            continue
        if total > _MAX_BLOCK:
            raise DamagedCapture(f"has a packet block of {total} octets, longer than any frame")
        body = read_exactly(file, total - 8)[:-4]
        if kind == _INTERFACE:
            if len(interfaces) >= _MAX_INTERFACES:
                raise DamagedCapture(f"describes more than {_MAX_INTERFACES} interfaces")
            interfaces.append(_interface(order, body))
        else:
            yield _packet(order, kind, body, interfaces)


def _read_section(file: BinaryIO, length: bytes = b"") -> str:
    """Pass over a section header; its byte order."""
    length = length or read_exactly(file, 4)
    magic = read_exactly(file, 4)
    order = _ORDERS.get(magic)
    if order is None:
        raise DamagedCapture("has a section without byte-order magic")
    total = struct.unpack(order + "I", length)[0]
    if total < 28 or total % 4:
        raise DamagedCapture(f"has a section header of {total} octets")
    skip(file, total - 12)
    return order


def _interface(order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise DamagedCapture("has an interface block that is too short")
    link_type, snap_length = struct.unpack_from(order + "H2xI", body)
    tick_s, offset_s = 1e-6, 0
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == _END_OF_OPTIONS:
            break
        if code == _TSRESOL and len(value) == 1:
            tick_s = 2.0 ** -(value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** -value[0]
        elif code == _TSOFFSET and len(value) == 8:
            offset_s = struct.unpack(order + "q", value)[0]
        at += 4 + length + (-length % 4)
    return _Interface(link_type, snap_length, tick_s, offset_s)


def _packet(order: str, kind: int, body: bytes, interfaces: list[_Interface]) -> Frame:
    if kind == _SIMPLE_PACKET:
        fixed, number, ticks = 4, 0, 0
        if len(body) < fixed:
            raise DamagedCapture("has a packet block that is too short")
        length = struct.unpack_from(order + "I", body)[0]
        captured = min(length, len(body) - fixed)
        if interfaces and interfaces[0].snap_length:
            captured = min(captured, interfaces[0].snap_length)
    else:
        fixed = 20
        if len(body) < fixed:
            raise DamagedCapture("has a packet block that is too short")
        # The old block has 16 bits of interface and a drop counter where the new one has 32 bits.
        layout = order + ("IIIII" if kind == _ENHANCED_PACKET else "H2xIIII")
        number, high, low, captured, length = struct.unpack_from(layout, body)
        ticks = high << 32 | low
    if captured > len(body) - fixed:
        raise DamagedCapture("has a packet longer than its block")
    if number >= len(interfaces):
        raise DamagedCapture("has a packet of an interface that it does not describe")
    interface = interfaces[number]
    time_s = ticks * interface.tick_s + interface.offset_s
    return time_s, interface.link_type, body[fixed : fixed + captured], length
