"""A reader of pcapng files, small and strict: tests hold the writer against it rather than against itself."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6


@dataclass(frozen=True, slots=True)
class Block:
    kind: int
    fixed: bytes
    """What comes before the options; a packet's data included, its padding not."""

    options: dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Frame:
    time_ns: int
    length: int
    outgoing: bool
    data: bytes


def blocks(path: Path) -> Iterator[Block]:
    """Every block, each checked for its two lengths and for options that end where the block does."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        kind, total = struct.unpack_from("=II", content, at)
        assert total % 4 == 0
        assert struct.unpack_from("=I", content, at + total - 4) == (total,), f"a whole block was expected at {at}"
        yield _block(kind, content[at + 8 : at + total - 4])
        at += total


def frames(path: Path) -> list[Frame]:
    """Every packet of the file."""
    found = []
    for block in blocks(path):
        if block.kind == PACKET:
            _, high, low, _, length = struct.unpack_from("=5I", block.fixed)
            (flags,) = struct.unpack("=I", block.options[2])
            found.append(Frame(high << 32 | low, length, flags & 3 == 2, block.fixed[20:]))
    return found


def statistics(path: Path) -> dict[int, int]:
    """The counters of the last block, by the code of their option."""
    last = list(blocks(path))[-1]
    assert last.kind == STATISTICS, "a complete capture ends with its counters"
    return {code: struct.unpack("=Q", value)[0] for code, value in last.options.items() if code >= 4}


def _block(kind: int, body: bytes) -> Block:
    size = {SECTION: 16, INTERFACE: 8, STATISTICS: 12, PACKET: 20}[kind]
    if kind == PACKET:
        (caught,) = struct.unpack_from("=I", body, 12)
        size += caught
    options, at = {}, size + -size % 4
    while at < len(body):
        code, length = struct.unpack_from("=HH", body, at)
        if code == 0:
            assert (length, at + 4) == (0, len(body))
            break
        options[code] = body[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
    return Block(kind, body[:size], options)
