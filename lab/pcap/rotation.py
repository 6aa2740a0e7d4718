"""A capture on disk that does not grow without bound: the newest two of a row of pcapng files.

A file that has half of the bound is closed and the next one begun; the last but one is removed then. So between half
and all of the bound is there at any time. A file keeps its name for as long as it lives, so that who knows how much of
it is whole can read that much while the capture goes on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.pcap.writer import Packet, PcapngWriter, Source, Statistics


class Part(NamedTuple):
    """One of the files."""

    path: Path
    octets: int
    """Written so far, whole packets."""

    since_ns: int | None
    """Time of its first packet, nanoseconds since the Unix epoch; None for the first of all files."""


class RotatingWriter:
    """As ``PcapngWriter``, with a bound: ``left.pcapng``, then ``left.1.pcapng``, ``left.2.pcapng`` ...

    Args:
        path: Of the first file.
        source: Goes into the headers of each.
        limit_bytes: Of all files together, but for what one write brings; 0 sets no bound.

    Raises:
        OSError: the file cannot be made or written.
    """

    def __init__(self, path: Path, source: Source, limit_bytes: int = 0) -> None:
        self._path = path
        self._source = source
        self._most = limit_bytes // 2
        self._number = 0
        self._before: Part | None = None
        self._packets_before = 0
        self._since_ns: int | None = None
        self._current = path
        self._writer = PcapngWriter(path, source)

    @property
    def packets(self) -> int:
        """How many packets were written, those in removed files included."""
        return self._packets_before + self._writer.packets

    @property
    def parts(self) -> Sequence[Part]:
        """The files that are there, oldest first."""
        now = Part(self._current, self._writer.octets, self._since_ns)
        return (now,) if self._before is None else (self._before, now)

    def write(self, packets: Sequence[Packet]) -> None:
        """Append packets, in one write.

        Raises:
            OSError: as of ``PcapngWriter.write``.
        """
        if self._most and packets and self._writer.packets and self._writer.octets >= self._most:
            self._rotate(packets[0][0])
        self._writer.write(packets)

    def write_statistics(self, statistics: Statistics) -> None:
        """Append the counters to the newest file.

        Raises:
            OSError: as of ``PcapngWriter.write_statistics``.
        """
        self._writer.write_statistics(statistics)

    def close(self) -> None:
        """Close the file; idempotent."""
        self._writer.close()

    def _rotate(self, since_ns: int) -> None:
        path = self._path.with_suffix(f".{self._number + 1}{self._path.suffix}")
        writer = PcapngWriter(path, self._source)
        if self._before is not None:
            self._before.path.unlink(missing_ok=True)
        self._before = self.parts[-1]
        self._packets_before = self.packets
        self._writer.close()
        self._number, self._current, self._since_ns, self._writer = self._number + 1, path, since_ns, writer
