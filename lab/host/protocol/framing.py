"""Frames on a stream: four octets of length, big-endian, and so many octets of a message."""

from lab.host.protocol.errors import FrameTooLong, FrameTruncated

HEAD = 4
"""Octets of the length."""

MOST = 2**20
"""Octets of a message; the limit of livekit-agents 1.8.9."""


def frame(message: bytes) -> bytes:
    """A message as a frame.

    Raises:
        FrameTooLong: it is longer than a message may be.
    """
    if len(message) > MOST:
        raise FrameTooLong(len(message), MOST)
    return len(message).to_bytes(HEAD, "big") + message


class Deframer:
    """Messages out of a stream that comes in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.broken: FrameTooLong | None = None
        """What ended the reading: a frame that announces more than a message may have; nothing behind it is read."""

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now; look at ``broken`` after them."""
        self._buffer += data
        whole: list[bytes] = []
        while (wanted := self._wanted()) is not None and len(self._buffer) >= wanted:
            whole.append(bytes(self._buffer[HEAD:wanted]))
            del self._buffer[:wanted]
        return whole

    def end(self) -> None:
        """The stream ended.

        Raises:
            FrameTruncated: in the midst of a frame.
        """
        if self._buffer and self.broken is None:
            raise FrameTruncated(len(self._buffer), self._wanted())

    def _wanted(self) -> int | None:
        """Octets of the frame that is coming in, its head included; None before its length is known, and for none."""
        if self.broken is not None or len(self._buffer) < HEAD:
            return None
        octets = int.from_bytes(self._buffer[:HEAD], "big")
        if octets > MOST:
            self.broken = FrameTooLong(octets, MOST)
            self._buffer.clear()
            return None
        return HEAD + octets
