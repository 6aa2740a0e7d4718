"""One capture file, read as a stream of segments and ICMP messages."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.core.errors import UsageError
from lab.core.icmp import IcmpMessage
from lab.core.segment import Segment
from lab.pcap.container import BROKEN_COMPRESSION, decompressed, frames
from lab.pcap.frame import DamagedCapture, Frame
from lab.pcap.ip import Decoder
from lab.pcap.link import ETHERNET, KNOWN, Payload, payload

_FIX = "write it with tcpdump -w or dumpcap, and stop them with Ctrl-C so that they finish the file."


class Capture:
    """A capture file and what was found in it.

    Args:
        path: A pcap or pcapng file, gzipped or not.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.frames = 0
        """Frames read so far."""
        self.first_time_s: float | None = None
        """Time of the first frame, whatever it held."""
        self.truncated: str | None = None
        """A clause that completes "the capture ..." where it could not be read to its end."""
        self.decoder = Decoder()
        """Counts what was not a segment."""
        self._raw: io.BufferedReader | None = None
        self._finders: dict[int, Callable[[bytes], tuple[int, bytes] | None]] = {}

    @property
    def size(self) -> int:
        """Octets of the file; 0 where it cannot be told."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def read_octets(self) -> int:
        """How far in the file reading is."""
        return 0 if self._raw is None or self._raw.closed else self._raw.tell()

    def packets(self) -> Iterator[Segment | IcmpMessage]:
        """Segments, and ICMP messages that quote one, in the order of the file.

        Raises:
            UsageError: the file is missing, empty or not a capture. Damage behind the first frame ends the stream
                and is told by ``truncated``.
        """
        try:
            with self.path.open("rb") as raw:
                self._raw = raw
                yield from self._decoded(self._open(raw))
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise UsageError(f"expected a capture, but {self.path} does not exist.") from None
            raise UsageError(f"expected a readable capture, saw {self.path}: {error.strerror or error}.") from None

    def _open(self, raw: io.BufferedReader) -> Iterator[Frame]:
        if not raw.peek(1):
            raise UsageError(f"expected a capture, but {self.path} is empty.", fix=_FIX)
        try:
            found = frames(decompressed(raw))
        except (DamagedCapture, *BROKEN_COMPRESSION):
            raise UsageError(f"expected a capture, but {self.path} has damaged compressed data.", fix=_FIX) from None
        if found is None:
            raise UsageError(
                f"expected a pcap or pcapng file, but {self.path} begins with {raw_start(self.path)}.", fix=_FIX
            )
        return found

    def _decoded(self, source: Iterator[Frame]) -> Iterator[Segment | IcmpMessage]:
        plain, decode, known = self.decoder.plain_ethernet, self.decoder.decode, KNOWN
        try:
            for time_s, link_type, data, length in source:
                if not self.frames:
                    self.first_time_s = time_s
                self.frames += 1
                packet: Segment | IcmpMessage | None = None
                if link_type == ETHERNET:
                    packet = plain(time_s, data, length)
                if packet is None:
                    if link_type in known:
                        packet = decode(time_s, data, length, payload(link_type, data))
                    else:
                        packet = self._decode_rare(time_s, link_type, data, length)
                if packet is not None:
                    yield packet
        except DamagedCapture as damage:
            self._cut_short(damage.what)
        except BROKEN_COMPRESSION:
            self._cut_short("has compressed data that is damaged or cut off")

    def _cut_short(self, what: str) -> None:
        self.truncated = what
        if not self.frames:
            raise UsageError(f"expected a capture, but {self.path} {what} before its first frame.", fix=_FIX) from None

    def _decode_rare(self, time_s: float, link_type: int, data: bytes, length: int) -> Segment | IcmpMessage | None:
        finder = self._finders.get(link_type)
        if finder is None:
            from lab.pcap.fallback import packet_finder

            finder = self._finders[link_type] = packet_finder(link_type)
        found = finder(data)
        if found is None:
            return self.decoder.decode(time_s, data, length, None)
        ethertype, packet = found
        return self.decoder.decode(time_s, packet, length - len(data) + len(packet), Payload(0, ethertype))

    def no_tcp(self) -> UsageError:
        """The error for a capture in which no TCP segment was found; says what was."""
        kinds = [f"{count} {name}" for name, count in self.decoder.seen.most_common(5)]
        kinds += [f"{self.decoder.fragments} IP fragments"] if self.decoder.fragments else []
        kinds += [f"{self.decoder.malformed} malformed"] if self.decoder.malformed else []
        seen = ", ".join(kinds)
        if self.truncated is not None:
            seen += f"; it {self.truncated}"
        return UsageError(
            f"expected TCP in {self.path}, saw {self.frames} frames without it ({seen or 'no packets at all'}).",
            fix="capture on the interface that the flow uses, with the filter 'tcp or icmp or icmp6'.",
        )


def read_packets(path: Path | str) -> Iterator[Segment | IcmpMessage]:
    """Segments and ICMP messages of a capture that must be whole.

    Raises:
        UsageError: it is no capture; or, after everything that could be read, that it is cut off or damaged.
    """
    capture = Capture(path)
    yield from capture.packets()
    if capture.truncated is not None:
        raise UsageError(f"expected a whole capture, but {path} {capture.truncated} after {capture.frames} frames.")


def read_segments(path: Path | str) -> Iterator[Segment]:
    """Segments of a capture that must be whole; raises as ``read_packets`` does."""
    return (packet for packet in read_packets(path) if isinstance(packet, Segment))


def raw_start(path: Path) -> str:
    """The first octets of a file, for a message."""
    with path.open("rb") as file:
        return " ".join(f"{octet:02x}" for octet in file.read(8))
