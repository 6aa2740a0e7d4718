"""What this kernel knows about the way to the peer: whether octets that were sent are acknowledged.

It tells a peer whose program is slow (its kernel acknowledges) from a path that has gone dark. A frozen path on which a
proxy acknowledges looks healthy here; only the watchdog's pings see that one.
"""

import socket
import struct
from typing import Any, NamedTuple

_UNACKED_AT = 24
"""Of ``tcpi_unacked`` in ``struct tcp_info`` (linux/tcp.h), octets from its beginning."""

_BYTES_ACKED_AT = 120
"""Of ``tcpi_bytes_acked``."""

_READ_BYTES = _BYTES_ACKED_AT + 8


class Sample(NamedTuple):
    """One look at a socket."""

    segments_in_flight: int
    bytes_acknowledged: int


def look(opened: Any) -> Sample | None:
    """The socket's state; None where the kernel does not say or the socket is closed.

    Args:
        opened: What a transport gives as its ``socket``.
    """
    try:
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _READ_BYTES)
    except (OSError, AttributeError):
        return None
    if len(info) < _READ_BYTES:
        return None
    (segments,) = struct.unpack_from("=I", info, _UNACKED_AT)
    (acknowledged,) = struct.unpack_from("=Q", info, _BYTES_ACKED_AT)
    return Sample(segments, acknowledged)


class Acknowledgements:
    """Since when some octets are unacknowledged, from looks at a socket."""

    def __init__(self) -> None:
        self._acknowledged = -1
        self._well_at: float | None = None

    def since(self, sample: Sample | None, now: float) -> float | None:
        """The earliest instant at which what is unacknowledged may have been sent; None: nothing is.

        Args:
            sample: A look, None where there was none to be had.
            now: Its instant, CLOCK_MONOTONIC seconds.
        """
        if sample is None:
            return None
        if sample.segments_in_flight == 0 or sample.bytes_acknowledged != self._acknowledged or self._well_at is None:
            self._acknowledged, self._well_at = sample.bytes_acknowledged, now
        return self._well_at if sample.segments_in_flight else None
