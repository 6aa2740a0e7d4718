"""The same messages over WebSocket: one in each binary frame, without a length of their own."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

from websockets.asyncio import client, server
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.protocol import State

from lab.host.protocol.codec import Codec
from lab.host.protocol.errors import FrameTooLong, NoMessage
from lab.host.protocol.framing import MOST
from lab.host.protocol.messages import Message
from lab.host.shell.transport import Claim, TransportClosed

CLOSE_S = 3.0
"""For the closing handshake; as long as a host drains."""


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
        self._written.clear()
        self._queued.set()

    async def flush(self) -> None:
        """See ``Transport``."""
        await self._written.wait()
        if self._queue:
            raise TransportClosed(self._closed or "")

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
                    self._queue.popleft()
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


class _Server(_Ending, server.ServerConnection):
    """Of who listened."""


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
        OSError: nobody does, or it is no WebSocket.
    """
    try:
        made = await client.connect(url, create_connection=_Client, proxy=None, **_OPTIONS)
    except InvalidHandshake as error:
        raise ConnectionError(f"{url} is no WebSocket: {error}") from error
    return WebSocketTransport(made, codec)


@contextlib.asynccontextmanager
async def listening(
    host: str, port: int, arrived: Callable[[WebSocketTransport], None], codec: Codec | None = None
) -> AsyncIterator[int]:
    """Listen for WebSockets; gives the port. See ``transport.listening``."""

    async def serve(connection: server.ServerConnection) -> None:
        arrived(WebSocketTransport(connection, codec))
        await connection.wait_closed()

    async with server.serve(serve, host, port, create_connection=_Server, **_OPTIONS) as made:
        yield next(iter(made.sockets)).getsockname()[1]
