"""One TCP connection of a program: everything that happens to it is said at the instant it is noticed."""

import errno
import os
import select
import socket
from typing import Any

from lab.programs.report import errno_name, say

READ_SIZE = 1 << 16


class Connection:
    """A connected socket that never blocks its program; the program polls it for ``wants``.

    Args:
        opened: Connected.
        reads: Whether to take what arrives. A connection that does not read still notices its error.
        label: Said with every event.
    """

    def __init__(self, opened: socket.socket, *, reads: bool = True, label: dict[str, Any] | None = None) -> None:
        opened.setblocking(False)
        self.socket = opened
        self.reads = reads
        self.sent = 0
        self.received = 0
        self.over = False
        """Closed; nothing will happen to it any more."""
        self.failed = False
        self._label = label or {}
        self._pending = bytearray()
        self._blocked = False
        self._eof = False

    @property
    def wants(self) -> int:
        """Event mask for poll(2), which adds POLLERR and POLLHUP."""
        reading = select.POLLIN if self.reads and not self._eof else 0
        return reading | (select.POLLOUT if self._pending else 0)

    @property
    def eof(self) -> bool:
        """Whether the peer has ended its direction."""
        return self._eof

    def write(self, data: bytes) -> None:
        """Send now what the kernel takes, and the rest as soon as it takes more."""
        self._pending += data
        self._flush()

    def on_event(self, mask: int, at: float) -> bytes:
        """Deal with what poll(2) reported at an instant; what arrived, if anything."""
        if mask & select.POLLERR:
            # Not by a read: it would give what lies in the queue first.
            self._fail(self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "wait", at)
            return b""
        data = self._read(at) if mask & select.POLLIN and self.reads and not self._eof else b""
        if mask & select.POLLOUT and self._pending and not self.over:
            self._flush()
        if mask & select.POLLHUP and not mask & select.POLLIN and not self.over:
            self.close()  # Both directions have ended.
        return data

    def shutdown(self) -> None:
        """End this direction (FIN); the other one goes on."""
        if not self.over:
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError as error:
                self._fail(error.errno or 0, "send", None)

    def close(self) -> None:
        """Close the socket; idempotent. What is in flight becomes an orphan of the kernel's."""
        if not self.over:
            self.over = True
            self.socket.close()
            say("closed", **self._label, sent=self.sent, received=self.received)

    def _flush(self) -> None:
        if self.over:
            return
        try:
            count = self.socket.send(self._pending)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._fail(error.errno or 0, "send", None)
            return
        if count:
            self.sent += count
            self._blocked = False
            del self._pending[:count]
            say("sent", **self._label, bytes=count, total=self.sent)
        if self._pending and not self._blocked:
            self._blocked = True
            say("blocked", **self._label, total=self.sent)

    def _read(self, at: float) -> bytes:
        try:
            data = self.socket.recv(READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError as error:
            self._fail(error.errno or 0, "wait", at)
            return b""
        self.received += len(data)
        if data:
            say("received", at=at, **self._label, bytes=len(data), total=self.received)
        else:
            self._eof = True
            say("eof", at=at, **self._label, total=self.received)
        return data

    def _fail(self, code: int, during: str, at: float | None) -> None:
        """Say the error, and what a program sees that does not stop at it: the next read looks like a clean close."""
        self.failed = True
        try:
            again = self.socket.recv(READ_SIZE).decode(errors="backslashreplace")
        except OSError as error:
            again = errno_name(error) or os.strerror(0)
        name = errno.errorcode.get(code, str(code))
        say("error", at=at, **self._label, errno=name, during=during, second_read=again)
        self.close()
