"""What agents tell the caller unasked: output of programs, their ends.

All agents of a testbed write to one packet-preserving Unix socket, so a testbed costs the caller one descriptor.
"""

import pickle
import socket
from collections import deque
from typing import NamedTuple

from lab.testbed.agent.loop import Loop

MOST_QUEUED_BYTES = 4 << 20
"""Output that waits for a caller who does not read; what comes beyond it is counted and dropped."""


class Output(NamedTuple):
    """Octets that a program wrote, as one read gave them."""

    node: str
    program: int
    """Number of the program in its node, given by the caller."""

    stream: str
    at: float
    """When they were read, CLOCK_MONOTONIC seconds."""

    data: bytes
    lost: int
    """Octets of this stream that were dropped just before these."""


class StreamEnd(NamedTuple):
    """The last holder of a program's stdout or stderr closed it."""

    node: str
    program: int
    stream: str
    at: float
    lost: int


class Exit(NamedTuple):
    """A program ended; its own output came before this."""

    node: str
    program: int
    at: float
    returncode: int


Event = Output | StreamEnd | Exit


class EventSender:
    """Sends events without ever blocking the agent.

    Args:
        loop: The agent's loop.
        sock: The shared sending end; it may be in blocking mode, others rely on that.
    """

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        self._loop = loop
        self._sock = sock
        self._queue: deque[bytes] = deque()
        self._queued = 0

    @property
    def congested(self) -> bool:
        """Whether the caller reads so slowly that output has to be dropped."""
        return self._queued >= MOST_QUEUED_BYTES

    def send(self, event: Event) -> None:
        """Send, or queue while the socket is full."""
        packet = pickle.dumps(event, pickle.HIGHEST_PROTOCOL)
        if self._queue or not self._try(packet):
            if not self._queue:
                self._loop.add_writer(self._sock.fileno(), self._flush)
            self._queue.append(packet)
            self._queued += len(packet)

    def _flush(self) -> None:
        while self._queue and self._try(self._queue[0]):
            self._queued -= len(self._queue.popleft())
        if not self._queue:
            self._loop.remove_writer(self._sock.fileno())

    def _try(self, packet: bytes) -> bool:
        try:
            self._sock.send(packet, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return False
        except OSError:
            # The caller is gone; the keeper notices and ends everything.
            return True
        return True
