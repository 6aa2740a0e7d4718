"""Capture files, gzipped or not: telling pcap and pcapng apart."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from lab.pcap import classic, pcapng
from lab.pcap.frame import Frame

_GZIP_MAGIC = b"\x1f\x8b"


BROKEN_COMPRESSION = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading raises where a gzipped file is cut off or damaged."""


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


def frames(file: BinaryIO) -> Iterator[Frame] | None:
    """The frames of a capture, or None where the file is not one.

    Args:
        file: At its first octet, decompressed.

    Raises:
        DamagedCapture: from the iterator, after the last frame that could be read.
    """
    magic = file.read(4)
    if magic == pcapng.SECTION_MAGIC:
        return pcapng.frames(file)
    if magic in classic.MAGICS:
        return classic.frames(file, magic)
    return None
