"""Capture files: what is common to pcap and pcapng, and telling them apart."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_FRAME = 1 << 20
"""Octets. The largest offloaded frame (BIG TCP) has 512 KiB; a longer record is damage, not a packet."""

_GZIP_MAGIC = b"\x1f\x8b"
_SKIP_CHUNK = 1 << 16


Frame = tuple[float, int, bytes, int]
"""Time captured (Unix seconds, 0 where the format holds none), link type (LINKTYPE_ value of the tcpdump registry),
what was captured, and octets on the wire. A plain tuple, since a million of them are made and taken apart at once."""

BROKEN_COMPRESSION = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading raises where a gzipped file is cut off or damaged."""


class DamagedCapture(Exception):
    """The file ends inside a record, or a record contradicts itself.

    Not one of the lab's errors: ``Capture`` turns it into one, or into a note.

    Args:
        what: A clause that completes "the capture ...".
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class _Inflated(io.RawIOBase):
    """What a gzipped file holds, piece by piece: where it is cut off, everything before is given first."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._file = gzip.GzipFile(fileobj=raw, mode="rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        data = self._file.read1(len(view))
        view[: len(data)] = data
        return len(data)


def decompressed(raw: io.BufferedReader) -> BinaryIO:
    """The stream itself, or what it holds where it is gzipped."""
    if raw.peek(2)[:2] != _GZIP_MAGIC:
        return raw
    return io.BufferedReader(_Inflated(raw), 1 << 16)


def read_exactly(file: BinaryIO, count: int) -> bytes:
    """Exactly ``count`` octets.

    Raises:
        DamagedCapture: the file ends before.
    """
    data = file.read(count)
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

    magic = file.read(4)
    if magic == pcapng.SECTION_MAGIC:
        return pcapng.frames(file)
    if magic in classic.MAGICS:
        return classic.frames(file, magic)
    return None
