"""A wire on websockets, by the client's tapped connection.

A close frame that has been read is the end, whatever TCP does: a server that keeps TCP open, or whose FIN is lost, has
still said its last. websockets tells of an end when TCP is over; here the reader is told at once, and TCP is ended from
here, behind the answer. The server SHOULD end TCP first (RFC 6455, 7.1.1), so that TIME_WAIT is its own and the client
can connect again from the same port. A session's next connection has another port: nothing is waited for.
"""

import asyncio
import contextlib
import socket
import ssl as tls
import threading
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidState,
    InvalidStatus,
    InvalidURI,
    TooManyFragments,
)
from websockets.frames import CloseCode
from websockets.protocol import State

from lab.core.errors import UsageError
from lab.live.client.link import Address
from lab.live.client.outcomes import CONNECT_OPTIONS
from lab.live.client.tap import TappedConnection
from lab.live.lifecycle.endings import ABNORMAL, Closure, Party, WireEnded
from lab.live.lifecycle.watch import Watch
from lab.live.protocol import closing
from lab.live.recovery.liveness import Patience

OPEN_S = 10.0
"""How long the server's part in the handshake is awaited, which is websockets' own measure."""

ANSWER_S = 2.0
"""How long the answer to a close is awaited. Release has 5 s in all, and an answer takes a round trip."""


class WebSocketWire:
    """A connection to a server.

    Args:
        url: ``ws://`` or ``wss://`` with a path.
        ssl: What to trust, for ``wss://``.
        connected: Told both ends' addresses, ours first, when TCP stands.
        watch: Send pings, and end the connection where nothing answers them; None: a connection that goes silent ends
            when its kernel gives up, or never.
    """

    def __init__(
        self,
        url: str,
        *,
        ssl: tls.SSLContext | None = None,
        connected: Callable[[Address, Address], None] | None = None,
        watch: Patience | None = None,
    ) -> None:
        self._url = url
        self._ssl = ssl
        self._watch = None if watch is None else Watch(watch)
        self._ears = _Ears(connected, self._watch)
        self._connection: _Connection | None = None
        self._left = False
        self._thread = 0
        """The event loop's."""

    async def open(self) -> None:
        """Connect. See ``Wire``.

        Raises:
            UsageError: the URL is none of a WebSocket. One that the server redirects to is the server's answer.
        """
        self._thread = threading.get_ident()
        options = CONNECT_OPTIONS | {"open_timeout": OPEN_S} | ({} if self._ssl is None else {"ssl": self._ssl})
        try:
            await connect(
                self._url,
                create_connection=self._make,  # type: ignore[arg-type]  # it is called, never subclassed
                proxy=None,
                compression=None,
                **options,
            )
        except tls.SSLCertVerificationError:
            raise  # a ValueError as well
        except (InvalidURI, ValueError) as error:  # a port or a host that cannot be comes as the latter
            why = error.msg if isinstance(error, InvalidURI) else str(error)
            answer = None if self._connection is None else self._connection.response
            if answer is None:
                raise UsageError(f"{self._url!r} is no WebSocket URL: {why}.", fix="ws://HOST:PORT/PATH.") from None
            where = f"{answer.reason_phrase}, to {answer.headers.get('Location')!r}, which is no WebSocket URL: {why}"
            raise WireEnded(Closure(Party.SERVER, answer.status_code, where)) from None
        except InvalidStatus as error:
            answer = error.response
            raise WireEnded(Closure(Party.SERVER, answer.status_code, answer.reason_phrase)) from error
        except (InvalidHandshake, EOFError) as error:
            raise WireEnded(Closure(Party.NETWORK, ABNORMAL, str(error))) from error
        if self._watch is not None and not self._open().gone:  # else nobody would end the watch
            self._watch.begin(self._open(), self._lost)

    async def receive(self) -> str | bytes:
        """The next message."""
        connection = self._open()
        try:
            return await connection.recv_messages.get()  # recv() tells of an end when TCP is over
        except EOFError:
            raise _ended(connection) from None
        except (UnicodeDecodeError, TooManyFragments) as error:
            wrong = isinstance(error, UnicodeDecodeError)
            await self.cancel(CloseCode.INVALID_DATA if wrong else CloseCode.MESSAGE_TOO_BIG, "")
            # Nobody asked for that close: the application is told as of what is no frame.
            why = f"what came is a message {'that is no UTF-8' if wrong else 'in too many fragments'}"
            raise WireEnded(Closure(Party.NETWORK, ABNORMAL, why)) from None
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_soon(connection.transport.abort)  # behind a close frame of who cancelled
            raise

    async def send(self, data: bytes) -> None:
        """Write a text message."""
        connection = self._open()
        try:
            await connection.send(data.decode("utf-8"))
        except ConnectionClosed:
            raise _ended(connection) from None
        if connection.protocol.state is State.CLOSED:
            # It ended while this waited for the kernel to take it, which websockets says nothing about.
            raise _ended(connection)

    async def cancel(self, code: int, reason: str) -> None:
        """Close, and await the answer; nothing is awaited where the server's close came first.

        The deadline is not websockets' own, which begins when the kernel has taken what was written before: on a dead
        path that is never.
        """
        connection = self._connection
        if connection is None or connection.said.done():
            return
        said, saying = connection.said, asyncio.ensure_future(connection.close(code, reason))
        try:
            await asyncio.wait({said, saying}, timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            saying.cancel()
            if not said.done():
                connection.transport.abort()
        if not said.done():
            await connection.wait_closed()

    def leave(self, code: int, reason: str) -> None:
        """Say goodbye now: a close frame, and FIN in the same segment; or FIN alone.

        The frame is written where nobody else can be writing: in the event loop's own thread, whether it runs or
        stands, and not in the middle of another frame, where the collector may have run and ended what held this. It
        goes to the kernel at once, loop or no loop, unless something waits before it: that is cut off. FIN can be
        asked for in any thread, at the socket: for sending alone, since a socket that takes nothing more would reset
        the connection at the server's answer.
        """
        connection = self._connection
        opened = None if connection is None or self._left else connection.opened_socket
        if connection is None or opened is None:
            return
        self._left = connection.aborted = True
        with contextlib.suppress(OSError):  # it is over
            if threading.get_ident() == self._thread and not connection.writing:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)  # FIN takes it out
                with contextlib.suppress(InvalidState, RuntimeError):  # no WebSocket yet, or over; a closed loop
                    connection.protocol.send_close(code, reason)
                    connection.send_data()
            opened.shutdown(socket.SHUT_WR)

    def _lost(self, why: str) -> None:
        """Give the connection up. If the path comes back in time the server is told, by the kernel.

        That sends copies of what is not acknowledged, the goodbye behind it; and a RST for whatever the server answers,
        since the socket is gone.
        """
        connection = self._open()
        connection.lost = why
        self.leave(closing.GOING_AWAY.code, "")
        connection.transport.abort()

    def _make(self, *arguments: Any, **options: Any) -> "_Connection":
        self._connection = _Connection(self._ears, *arguments, **options)
        return self._connection

    def _open(self) -> "_Connection":
        assert self._connection is not None, "open() comes first"
        return self._connection


class _Ears:
    """Hears of a connection's beginning, and for whoever watches it."""

    def __init__(self, connected: Callable[[Address, Address], None] | None, watch: Watch | None) -> None:
        self._connected = connected
        self._watch = watch

    def connected(self, local: Address, remote: Address) -> None:
        if self._connected is not None:
            self._connected(local, remote)

    def heard(self, at: float) -> None:
        if self._watch is not None:
            self._watch.heard(at)

    def pong(self, sent_at: float, at: float) -> None:
        if self._watch is not None:
            self._watch.pong(sent_at, at)

    def over(self) -> None:
        if self._watch is not None:
            self._watch.stop()


class _Connection(TappedConnection):
    """Over when a close frame has been read, or what is no frame."""

    writing = False
    """Something is on its way to the transport."""

    gone = False
    """Its transport is, or is about to."""

    said: asyncio.Future[None]
    """Done when the server's close frame has been read."""

    lost: str | None = None
    """What showed its watchdog that it is."""

    def __init__(self, ears: _Ears, *arguments: Any, **options: Any) -> None:
        super().__init__(ears, *arguments, **options)
        self._over = ears.over
        self.said = self.loop.create_future()
        self.linger_s = ANSWER_S

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._over()
        super().connection_lost(exc)

    def send_data(self) -> None:
        self.writing = True
        try:
            super().send_data()
        finally:
            self.writing = False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.parser_exc is not None:
            self.transport.abort()
        elif self.protocol.close_rcvd is not None and not self.said.done():
            self.gone = True
            self._over()
            self.said.set_result(None)
            self.recv_messages.close()
            # Behind the answer, which may wait for the kernel to take it: for no longer than an answer is awaited.
            self.transport.close()
            self.linger()


def _ended(connection: _Connection) -> WireEnded:
    answer = connection.protocol.close_rcvd
    if answer is not None:  # TCP may go on for a moment
        by = Party.SERVER if connection.protocol.close_rcvd_then_sent else Party.US
        return WireEnded(Closure(by, answer.code, answer.reason))
    ending, wrong = connection.ending, connection.protocol.parser_exc
    if ending.code is not None:
        return WireEnded(Closure(Party(ending.by), ending.code, ending.reason))
    if connection.lost is not None:
        return WireEnded(Closure(Party.NETWORK, ABNORMAL, connection.lost))
    if wrong is not None and not isinstance(wrong, EOFError):
        return WireEnded(Closure(Party.NETWORK, ABNORMAL, str(wrong)))  # it was no frame; the answer to it is no close
    return WireEnded(Closure(Party(ending.by), ABNORMAL, ending.error or ""))
