"""What carries the messages between one host and one remote, and the framed TCP that does."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NoReturn, Protocol

from lab.core.errors import UsageError
from lab.host.protocol.codec import Codec
from lab.host.protocol.framing import Deframer, frame
from lab.host.protocol.messages import Message

_CHUNK = 2**16


class Undeliverable(ConnectionError):
    """A message was not taken; the transport may stand all the same."""


class TransportClosed(Undeliverable):
    """The transport is gone."""


class Transport(Protocol):
    """One two-way stream of messages; a host or a remote has it to itself."""

    def claim(self, owner: str) -> None:
        """Take it.

        Raises:
            UsageError: somebody has it already.
        """

    def put(self, message: Message) -> None:
        """Queue a message.

        Raises:
            FrameTooLong: it is longer than a message may be.
            Unsayable: it holds what no message can.
            Undeliverable: it is not taken.
        """

    @property
    def queued(self) -> int:
        """Octets that the kernel has not taken yet."""

    async def flush(self) -> None:
        """Wait until all that is queued is the kernel's.

        Raises:
            TransportClosed: it is not going to be.
        """

    async def receive(self) -> Message:
        """Wait for the next message.

        Raises:
            HostProtocolError: what came is none.
            TransportClosed: nothing more comes.
        """

    async def close(self) -> None:
        """End it behind what is queued."""

    def abort(self) -> None:
        """End it now."""


class Claim:
    """Who has a transport."""

    def __init__(self) -> None:
        self._owner: str | None = None

    def claim(self, owner: str) -> None:
        """See ``Transport``."""
        if self._owner is not None:
            raise UsageError(
                f"This transport is {self._owner}'s already, and a second one would take its messages away.",
                fix=f"Make a transport of its own for {owner}.",
            )
        self._owner = owner


class StreamTransport(Claim):
    """Framed messages over a TCP connection, or another stream.

    Args:
        reader: Where they come from.
        writer: Where they go.
        codec: Which set is known.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, codec: Codec | None = None) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._codec = codec or Codec()
        self._deframer = Deframer()
        self._whole: deque[bytes] = deque()
        self._told = False
        # A drain is then over when the kernel has everything, not when it is nearly so.
        writer.transport.set_write_buffer_limits(high=0)

    def put(self, message: Message) -> None:
        """See ``Transport``."""
        data = frame(self._codec.encode(message))
        if self._writer.is_closing():
            raise TransportClosed("the stream is closed")
        self._writer.write(data)

    @property
    def queued(self) -> int:
        """See ``Transport``."""
        return self._writer.transport.get_write_buffer_size()

    async def flush(self) -> None:
        """See ``Transport``."""
        try:
            await self._writer.drain()
        except OSError as error:
            # A kernel's give-up is no ConnectionError.
            raise TransportClosed(str(error)) from error

    async def receive(self) -> Message:
        """See ``Transport``."""
        while not self._whole:
            self._stop_at_broken()
            try:
                data = await self._reader.read(_CHUNK)
            except OSError as error:
                raise TransportClosed(str(error)) from error
            if not data:
                self._end()
            self._whole += self._deframer.feed(data)
        return self._codec.decode(self._whole.popleft())

    async def close(self) -> None:
        """See ``Transport``."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """See ``Transport``."""
        self._writer.transport.abort()

    def _stop_at_broken(self) -> None:
        """A frame that cannot be read is told once, after all that came before it."""
        broken = self._deframer.broken
        if broken is not None and not self._told:
            self._told = True
            raise broken
        if broken is not None:
            raise TransportClosed("nothing is read behind a frame that is too long")

    def _end(self) -> NoReturn:
        """Once for a frame that is not whole; after it, and without one, for the end."""
        deframer, self._deframer = self._deframer, Deframer()
        deframer.end()
        raise TransportClosed("the other side ended it")


async def connect(host: str, port: int, codec: Codec | None = None) -> StreamTransport:
    """A transport to who listens there.

    Raises:
        OSError: nobody does.
    """
    reader, writer = await asyncio.open_connection(host, port)
    return StreamTransport(reader, writer, codec)


@contextlib.asynccontextmanager
async def listening(
    host: str, port: int, arrived: Callable[[StreamTransport], None], codec: Codec | None = None
) -> AsyncIterator[int]:
    """Listen for connections; gives the port.

    Args:
        host: The address.
        port: 0 takes a free one.
        arrived: Takes each connection's transport.
        codec: Which set is known.
    """
    server = await asyncio.start_server(
        lambda reader, writer: arrived(StreamTransport(reader, writer, codec)), host, port
    )
    async with server:
        yield server.sockets[0].getsockname()[1]
