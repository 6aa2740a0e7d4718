"""Frames and capture files as bytes, for tests of the readers."""

import ipaddress
import struct

ETHERNET, RAW, NULL, LINUX_SLL, LINUX_SLL2 = 1, 101, 0, 113, 276
MICRO, NANO = 0xA1B2C3D4, 0xA1B23C4D


def tcp(
    *,
    seq: int = 1,
    ack: int = 0,
    flags: int = 0x10,
    options: bytes = b"",
    payload: bytes = b"",
    ports: tuple[int, int] = (40000, 5000),
) -> bytes:
    """A TCP segment; options must be a multiple of four octets."""
    return struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) << 2, flags, 500, 0, 0) + options + payload


def ipv4(
    payload: bytes,
    *,
    protocol: int = 6,
    total: int | None = None,
    options: bytes = b"",
    fragment: int = 0,
    ends: tuple[str, str] = ("192.0.2.1", "198.51.100.1"),
) -> bytes:
    """An IPv4 packet."""
    header = 20 + len(options)
    length = header + len(payload) if total is None else total
    addresses = b"".join(ipaddress.IPv4Address(end).packed for end in ends)
    first = 0x40 | header // 4
    return struct.pack(">BBHHHBBH", first, 0, length, 77, fragment, 64, protocol, 0) + addresses + options + payload


def ipv6(payload: bytes, *, following: int = 6, length: int | None = None) -> bytes:
    """An IPv6 packet."""
    addresses = b"".join(ipaddress.IPv6Address(end).packed for end in ("2001:db8::1", "2001:db8::2"))
    return (
        struct.pack(">IHBB", 6 << 28, len(payload) if length is None else length, following, 64) + addresses + payload
    )


def ethernet(packet: bytes, ethertype: int = 0x0800, tags: bytes = b"") -> bytes:
    """An Ethernet frame."""
    return bytes(12) + tags + struct.pack(">H", ethertype) + packet


def pcap(
    frames: list[tuple[float, bytes]],
    *,
    link_type: int = ETHERNET,
    order: str = "<",
    magic: int = MICRO,
    snap: int = 65535,
) -> bytes:
    """A classic capture."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link_type)
    scale = 1e9 if magic == NANO else 1e6
    for at, frame in frames:
        kept = frame[:snap]
        out += struct.pack(order + "IIII", int(at), round(at % 1 * scale), len(kept), len(frame)) + kept
    return out


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """A pcapng option."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link_type: int = ETHERNET, options: bytes = b"", order: str = "<", snap: int = 0) -> bytes:
    """An interface description block."""
    return block(1, struct.pack(order + "HHI", link_type, 0, snap) + options, order)


def enhanced(frame: bytes, ticks: int, number: int = 0, order: str = "<", length: int | None = None) -> bytes:
    """An enhanced packet block."""
    fixed = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), length or len(frame))
    return block(6, fixed + frame + bytes(-len(frame) % 4) + option(1, b"a comment", order), order)


def simple(frame: bytes, order: str = "<") -> bytes:
    """A simple packet block."""
    return block(3, struct.pack(order + "I", len(frame)) + frame, order)


def old(frame: bytes, ticks: int, order: str = "<") -> bytes:
    """A packet block, obsolete."""
    fixed = struct.pack(order + "HHIIII", 0, 0, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), len(frame))
    return block(2, fixed + frame, order)
