"""Capture files: what is common to pcap and pcapng, and telling them apart."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_FRAME = 1 << 20
"""Octets. The largest offloaded frame (BIG TCP) has 512 KiB; a longer record is damage, not a packet."""

_GZIP_MAGIC = b"\x1f\x8b"
_SKIP_CHUNK = 1 << 16


class Frame(NamedTuple):
    """One captured frame."""

    time_s: float
    """Unix time; 0 where the format holds none (simple packet blocks)."""

    link_type: int
    """LINKTYPE_ value of the tcpdump registry."""

    data: bytes
    """What was captured of it."""

    length: int
    """Octets on the wire."""


class DamagedCapture(Exception):
    """The file ends inside a record, or a record contradicts itself.

    Not one of the lab's errors: ``Capture`` turns it into one, or into a note.

    Args:
        what: A clause that completes "the capture ...".
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def decompressed(raw: io.BufferedReader) -> BinaryIO:
    """The stream itself, or what it holds where it is gzipped."""
    if raw.peek(2)[:2] != _GZIP_MAGIC:
        return raw
    return io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb"), 1 << 16)


def read_some(file: BinaryIO, count: int) -> bytes:
    """Up to ``count`` octets, fewer only at the end of the file.

    Raises:
        DamagedCapture: the compressed data is broken or ends early.
    """
    try:
        return file.read(count)
    except EOFError:
        raise DamagedCapture("is cut off inside its compressed data") from None
    except (zlib.error, gzip.BadGzipFile):
        raise DamagedCapture("has damaged compressed data") from None


def read_exactly(file: BinaryIO, count: int) -> bytes:
    """Exactly ``count`` octets.

    Raises:
        DamagedCapture: the file ends before.
    """
    data = read_some(file, count)
    if len(data) < count:
        raise DamagedCapture("is cut off inside a record")
    return data


def skip(file: BinaryIO, count: int) -> None:
    """Pass over ``count`` octets in small steps, whatever the count.

    Raises:
        DamagedCapture: the file ends before.
    """
    while count > 0:
        count -= len(read_exactly(file, min(count, _SKIP_CHUNK)))


def frames(file: BinaryIO) -> Iterator[Frame] | None:
    """The frames of a capture, or None where the file is not one.

    Args:
        file: At its first octet, decompressed.

    Raises:
        DamagedCapture: from the iterator, after the last frame that could be read.
    """
    from lab.pcap import classic, pcapng  # both import this module

    magic = read_some(file, 4)
    if magic == pcapng.SECTION_MAGIC:
        return pcapng.frames(file)
    if magic in classic.MAGICS:
        return classic.frames(file, magic)
    return None
