"""A wire on websockets."""

import asyncio
import contextlib
import socket
import ssl as tls
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidState, InvalidStatus
from websockets.protocol import State

from lab.live.lifecycle.endings import ABNORMAL, Closure, Party, WireEnded

ANSWER_S = 2.0
"""How long the answer to a close is awaited. Release has 5 s in all, and an answer takes a round trip."""

Address = tuple[str, int]


class WebSocketWire:
    """A connection to a server.

    Args:
        url: ``ws://`` or ``wss://`` with a path.
        ssl: What to trust, for ``wss://``.
        connected: Told both ends' addresses, ours first, when TCP stands.
    """

    def __init__(
        self,
        url: str,
        *,
        ssl: tls.SSLContext | None = None,
        connected: Callable[[Address, Address], None] | None = None,
    ) -> None:
        self._url = url
        self._ssl = ssl
        self._connected = connected
        self._connection: ClientConnection | None = None
        self._left = False

    async def open(self) -> None:
        """Connect. See ``Wire``."""
        options: dict[str, Any] = {} if self._ssl is None else {"ssl": self._ssl}
        try:
            await connect(
                self._url,
                create_connection=self._make,  # type: ignore[arg-type]  # it is called, never subclassed
                proxy=None,
                compression=None,
                ping_interval=None,
                close_timeout=None,
                max_queue=None,
                max_size=None,
                **options,
            )
        except InvalidStatus as error:
            answer = error.response
            raise WireEnded(Closure(Party.SERVER, answer.status_code, answer.reason_phrase)) from error
        except (InvalidHandshake, EOFError) as error:
            raise WireEnded(Closure(Party.NETWORK, ABNORMAL, str(error))) from error

    async def receive(self) -> str | bytes:
        """The next message."""
        try:
            return await self._open().recv()
        except ConnectionClosed as error:
            raise self._ended(error) from None

    async def send(self, data: bytes) -> None:
        """Write a text message."""
        connection = self._open()
        try:
            await connection.send(data.decode("utf-8"))
        except ConnectionClosed as error:
            raise self._ended(error) from None
        if connection.protocol.state is State.CLOSED:
            # It ended while this waited for the kernel to take it, which websockets says nothing about.
            raise self._ended(connection.protocol.close_exc)

    async def cancel(self, code: int, reason: str) -> None:
        """Close, and await the answer and the end of TCP, also where the server's close came first.

        The deadline is not websockets' own, which begins when the kernel has taken what was written before: on a dead
        path that is never.
        """
        connection = self._connection
        if connection is None:
            return
        try:
            async with asyncio.timeout(ANSWER_S):
                await connection.close(code, reason)
        except TimeoutError:
            connection.transport.abort()
            await connection.wait_closed()

    def leave(self, code: int, reason: str) -> None:
        """Close now.

        asyncio's transport writes to the kernel at once where nothing waits before it, loop or no loop. Its own close
        needs turns of the loop, so that FIN is asked for at the socket: for sending alone, since a socket that takes
        nothing more would reset the connection at the server's answer.
        """
        connection = self._connection
        if connection is None or not hasattr(connection, "transport") or self._left:
            return
        self._left = True
        with contextlib.suppress(InvalidState, RuntimeError):  # no WebSocket yet, or over; a closed loop
            connection.protocol.send_close(code, reason)
            connection.send_data()
        opened = connection.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            opened.shutdown(socket.SHUT_WR)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing can be asked of it
            connection.transport.abort()

    def _make(self, *arguments: Any, **options: Any) -> ClientConnection:
        self._connection = _Noting(self._connected, *arguments, **options)
        return self._connection

    def _open(self) -> ClientConnection:
        assert self._connection is not None, "open() comes first"
        return self._connection

    def _ended(self, error: ConnectionClosed) -> WireEnded:
        if error.rcvd is not None:
            by = Party.US if error.rcvd_then_sent is False else Party.SERVER
            return WireEnded(Closure(by, error.rcvd.code, error.rcvd.reason))
        ours = self._left or error.sent is not None
        return WireEnded(Closure(Party.US if ours else Party.NETWORK, ABNORMAL))


class _Noting(ClientConnection):
    """Tells its addresses."""

    def __init__(self, connected: Callable[[Address, Address], None] | None, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tell = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._tell is not None:
            ours, theirs = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
            self._tell((ours[0], ours[1]), (theirs[0], theirs[1]))
