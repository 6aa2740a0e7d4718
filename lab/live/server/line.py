"""One WebSocket as the sessions see it: whole messages in, bounded writes out, and how it ended.

Messages, closes and the end of TCP are told in the order in which they came, from within the transport's callbacks: a
result and the close frame right behind it must not overtake each other.
"""

import asyncio
import errno
import os
from typing import Any, Protocol

from websockets.asyncio.server import Server, ServerConnection, broadcast
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from lab.live.protocol.paths import EndpointKind
from lab.live.session.states import Detach

MOST_UNSENT = 4 * 2**20
"""Octets that wait for a client to read, over a minute of speech in base64; then it is given up. A path that is only
silent holds far less: the model says one answer at most to nobody."""

LINGER_S = 600.0
"""How long a connection that the server closed is kept for its answer. The kernel's own give-up, two and a half minutes
in the study, has to come first, or its retransmissions would end early."""

_DATA = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})


class Owner(Protocol):
    """Who is told."""

    @property
    def pong_delay_s(self) -> float:
        """Wall seconds added to every pong."""

    def opened(self, line: "Line") -> None:
        """The WebSocket is open."""

    def received(self, line: "Line", data: bytes) -> None:
        """A whole message came."""

    def broken(self, line: "Line", code: int, reason: str) -> None:
        """The client broke WebSocket's own rules, such as the size of a message, and was told so."""

    def ended(self, line: "Line", how: Detach, detail: str) -> None:
        """The connection is over; told once."""


class Line(ServerConnection):
    """A connection of the server.

    Args:
        owner: Who is told what comes.
        protocol: WebSocket's rules.
        server: Of websockets.
        options: For ``ServerConnection``.
    """

    def __init__(self, owner: Owner, protocol: ServerProtocol, server: Server, **options: Any) -> None:
        super().__init__(protocol, server, **options)
        self.number = 0
        """The owner's name for it."""
        self.kind = EndpointKind.DEVELOPER
        """By which path its client came; the owner's too."""
        self._owner = owner
        self._message = bytearray()
        self._begun = False
        self._over = False
        self._gave_up = ""
        self._lingers: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        if owner.pong_delay_s > 0:
            self._send_frame = protocol.send_frame
            protocol.send_frame = self._hold_pong  # type: ignore[method-assign]  # pongs are the protocol's own doing

    def begin(self) -> None:
        """Tell the owner that this is a WebSocket now."""
        self._begun = True
        self._owner.opened(self)

    def transmit(self, payload: bytes) -> None:
        """Send a binary frame without waiting; give the client up where too much waits for it already."""
        if self.transport.is_closing():
            return  # Its end is told in a moment; until then every write would be an error in the log.
        broadcast([self], payload)
        if self.unsent > MOST_UNSENT:
            self.give_up(f"{self.unsent} octets unread by the client")

    @property
    def unsent(self) -> int:
        """Octets that the kernel has not taken yet."""
        return int(self.transport.get_write_buffer_size())

    def hang_up(self, code: int, reason: str) -> None:
        """Send a close frame, and wait for its answer in the background."""
        task = asyncio.get_running_loop().create_task(self.close(code, reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._linger()

    def give_up(self, why: str) -> None:
        """Drop the connection without a word."""
        if not self._over:
            self._gave_up = why
            self.transport.abort()

    # websockets' own callbacks

    def process_event(self, event: Request | Response | Frame) -> None:
        """Take a request or a frame."""
        if not isinstance(event, Frame):
            super().process_event(event)
        elif not self._begun:
            self.give_up("frames before the handshake's answer")
        elif event.opcode in _DATA:
            self._piece(event)
        elif event.opcode is Opcode.CLOSE:
            told = self.protocol.close_rcvd
            self._end(Detach.CLOSE_FRAME, f"{told.code} {told.reason}".strip() if told is not None else "")
        else:
            super().process_event(event)

    def data_received(self, data: bytes) -> None:
        """Take octets."""
        super().data_received(data)
        sent = self.protocol.close_sent
        if sent is not None and self._lingers is None:
            if not self._over and self._begun:
                self._owner.broken(self, sent.code, sent.reason)
            self._linger()

    def eof_received(self) -> None:
        """Take the client's FIN."""
        super().eof_received()
        self._end(Detach.FIN, "")

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the end of the transport."""
        super().connection_lost(exc)
        if self._lingers is not None:
            self._lingers.cancel()
        how, detail = ending(exc)
        self._end(*((Detach.NOTHING, self._gave_up) if self._gave_up else (how, detail)))

    def _piece(self, frame: Frame) -> None:
        self._message += frame.data
        if frame.fin:
            whole, self._message = bytes(self._message), bytearray()
            self._owner.received(self, whole)

    def _end(self, how: Detach, detail: str) -> None:
        if not self._over:
            self._over = True
            if self._begun:
                self._owner.ended(self, how, detail)

    def _linger(self) -> None:
        if self._lingers is None:
            self._lingers = self.loop.call_later(LINGER_S, self.give_up_silently)

    def give_up_silently(self) -> None:
        """Drop a connection whose client does not answer the server's close."""
        self._gave_up = self._gave_up or "the close was not answered"
        self.transport.abort()

    def _hold_pong(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            self.loop.call_later(self._owner.pong_delay_s, self._pong, frame)
        else:
            self._send_frame(frame)

    def _pong(self, frame: Frame) -> None:
        if self.protocol.state is State.OPEN:
            self._send_frame(frame)
            self.send_data()


def ending(error: Exception | None) -> tuple[Detach, str]:
    """How TCP ended, from what the transport says of it, and its name for a log."""
    if error is None:
        return Detach.FIN, ""
    if not isinstance(error, OSError):
        return Detach.NOTHING, str(error)
    detail = errno.errorcode.get(error.errno or 0, type(error).__name__)
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return Detach.RST, detail
    if error.errno in _GIVE_UPS:
        return Detach.TCP_TIMEOUT, f"{detail}: {os.strerror(error.errno)}"
    return Detach.NOTHING, f"{detail}: {error}"


_GIVE_UPS = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH}
"""What the kernel reports when it stops retransmitting: the latter two where ICMP had said why."""
