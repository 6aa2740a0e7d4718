"""The same messages over WebSocket: one in each binary frame, without a length of their own."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from websockets.asyncio import client, server
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.protocol import State

from lab.host.protocol.codec import Codec
from lab.host.protocol.errors import FrameTooLong, NoMessage
from lab.host.protocol.framing import MOST
from lab.host.protocol.messages import Message
from lab.host.shell.transport import Claim, TransportClosed

CLOSE_S = 3.0
"""For the closing handshake; as long as a host drains."""


class NotWebSocket(ConnectionError):
    """Who listens there speaks something else.

    Args:
        url: Where.
        why: What was wrong with the answer.
    """

    def __init__(self, url: str, why: str) -> None:
        super().__init__(url, why)
        self.url = url
        self.why = why

    def __str__(self) -> str:
        return f"{self.url} is no WebSocket: {self.why}."


class WebSocketTransport(Claim):
    """Messages over a WebSocket; a longer one than a message may be is refused with 1009, by RFC 6455's own means.

    Args:
        connection: An open one.
        codec: Which set is known.
    """

    def __init__(self, connection: Connection, codec: Codec | None = None) -> None:
        super().__init__()
        self._connection = connection
        self._codec = codec or Codec()
        self._queue: deque[bytes] = deque()
        self._octets = 0
        """Of what is queued."""
        self._queued = asyncio.Event()
        self._written = asyncio.Event()
        """Nothing is queued, or nothing queued goes out any more."""
        self._written.set()
        self._closed: str | None = None
        self._writing = asyncio.get_running_loop().create_task(self._write())

    def put(self, message: Message) -> None:
        """See ``Transport``."""
        data = self._codec.encode(message)
        if len(data) > MOST:
            raise FrameTooLong(len(data), MOST)
        if self._closed is not None:
            raise TransportClosed(self._closed)
        self._queue.append(data)
        self._octets += len(data)
        self._written.clear()
        self._queued.set()

    @property
    def queued(self) -> int:
        """See ``Transport``."""
        return self._octets

    async def flush(self) -> None:
        """See ``Transport``."""
        await self._written.wait()
        # What is queued on one that stands came behind what this has waited for.
        if self._queue and self._closed is not None:
            raise TransportClosed(self._closed)

    async def receive(self) -> Message:
        """See ``Transport``."""
        try:
            data = await self._connection.recv()
        except ConnectionClosed as error:
            self._over(str(error))
            raise TransportClosed(str(error)) from error
        if isinstance(data, str):
            raise NoMessage("it is a text frame")
        return self._codec.decode(data)

    async def close(self) -> None:
        """See ``Transport``."""
        with contextlib.suppress(TransportClosed):
            await self.flush()
        self._over("closed here")
        await self._connection.close()

    def abort(self) -> None:
        """See ``Transport``."""
        self._over("aborted here")
        self._connection.transport.abort()

    async def _write(self) -> None:
        try:
            while True:
                await self._queued.wait()
                self._queued.clear()
                while self._queue:
                    await self._connection.send(self._queue[0])
                    if self._connection.protocol.state is State.CLOSED:
                        # It ended while this waited for the kernel to take it, which websockets says nothing about.
                        raise self._connection.protocol.close_exc
                    self._octets -= len(self._queue.popleft())
                self._written.set()
        except ConnectionClosed as error:
            self._over(str(error))

    def _over(self, why: str) -> None:
        self._closed = self._closed or why
        if self._writing is not asyncio.current_task():
            self._writing.cancel()
        self._written.set()


class _Ending(Connection):
    """One whose end is the other side's close frame, not the end of TCP, which that may keep open or never send."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.close_rcvd is not None and not self.transport.is_closing():
            # Behind the answer, which websockets has written; what nobody takes is waited for no longer than a close.
            self.transport.close()
            self.loop.call_later(CLOSE_S, self.transport.abort)


class _Client(_Ending, client.ClientConnection):
    """Of who connected."""


class _Opening:
    """The connections of a listener that are not WebSockets yet, which its end does not wait for.

    Args:
        refused: Takes why one is none.
    """

    def __init__(self, refused: Callable[[str], None]) -> None:
        self._refused = refused
        self._there: set[asyncio.BaseTransport] = set()
        self._over = False

    def began(self, transport: asyncio.BaseTransport) -> None:
        """One came."""
        self._there.add(transport)
        if self._over:
            _abort(transport)

    def ended(self, transport: asyncio.BaseTransport, why: Exception | str | None) -> None:
        """It is one, or is told of."""
        self._there.discard(transport)
        if why is not None and not self._over:
            self._refused(f"{why}")

    def end(self) -> None:
        """Wait for none of them any more."""
        self._over = True
        for transport in self._there:
            _abort(transport)


class _Server(_Ending, server.ServerConnection):
    """Of who listened. One that is no WebSocket is told so, in HTTP, and told of.

    Args:
        opening: Those of its listener.
    """

    def __init__(self, *args: Any, opening: _Opening, **options: Any) -> None:
        super().__init__(*args, **options)
        self._opening = opening
        self._first = True
        self._framed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opening.began(transport)

    def data_received(self, data: bytes) -> None:
        first, self._first = self._first, False
        if first and not data.startswith(_METHOD):
            self._framed = True
            self.transport.write(_NO_WEBSOCKET)
            self.transport.close()
        else:
            super().data_received(data)

    async def handshake(self, *args: Any, **options: Any) -> None:
        why: Exception | str | None = None
        try:
            await super().handshake(*args, **options)
            why = self.protocol.handshake_exc
        finally:
            self._opening.ended(self.transport, _FRAMED if why is not None and self._framed else why)


def _abort(transport: asyncio.BaseTransport) -> None:
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()


_METHOD = b"G"
"""RFC 6455, 4.1: what opens a WebSocket is a GET. A frame's length begins with a zero."""

_FRAMED = (
    "what came is no HTTP, as WebSocket is: the other side may speak framed TCP. "
    "Fix: have the same carrier at both sides; for the programs, --websocket at both or at neither."
)
_NO_WEBSOCKET = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "ping_interval": None,
        "compression": None,
        "max_size": MOST,
        "close_timeout": CLOSE_S,
        # A flush is then over when the kernel has everything, not when it is nearly so.
        "write_limit": 0,
    }
)


async def connect(url: str, codec: Codec | None = None) -> WebSocketTransport:
    """A transport to who listens there.

    Raises:
        NotWebSocket: who does speaks something else.
        OSError: nobody does, or that is no address of a WebSocket.
    """
    try:
        made = await client.connect(url, create_connection=_Client, proxy=None, **_OPTIONS)
    except InvalidHandshake as error:
        raise NotWebSocket(url, str(error)) from error
    except (InvalidURI, ValueError) as error:
        raise ConnectionError(f"{url} is no address of a WebSocket") from error
    return WebSocketTransport(made, codec)


@contextlib.asynccontextmanager
async def listening(
    host: str,
    port: int,
    arrived: Callable[[WebSocketTransport], None],
    codec: Codec | None = None,
    *,
    refused: Callable[[str], None] = lambda _why: None,
) -> AsyncIterator[int]:
    """Listen for WebSockets; gives the port. See ``transport.listening``.

    Args:
        host: The address.
        port: 0 takes a free one.
        arrived: Takes each connection's transport.
        codec: Which set is known.
        refused: Takes why a connection is no WebSocket; it is ended.
    """

    async def serve(connection: server.ServerConnection) -> None:
        arrived(WebSocketTransport(connection, codec))
        await connection.wait_closed()

    opening = _Opening(refused)
    create: Any = partial(_Server, opening=opening)
    async with server.serve(serve, host, port, create_connection=create, **_OPTIONS) as made:
        try:
            yield next(iter(made.sockets)).getsockname()[1]
        finally:
            opening.end()
