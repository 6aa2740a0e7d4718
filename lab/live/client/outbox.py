"""What waits to be written to a connection, in its order: messages and pings alike.

One order for both: when a pong comes, whatever was queued before its ping has arrived.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from websockets.exceptions import ConnectionClosed

from lab.live.client.tap import TappedConnection
from lab.live.protocol.messages import ClientMessage

Written = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping, asked for at an instant of CLOCK_MONOTONIC."""

    at: float


class Outbox:
    """Takes without waiting; one task writes."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[ClientMessage | Ping, Written | None]] = asyncio.Queue()

    def message(self, message: ClientMessage, written: Written | None) -> None:
        """Queue a message; ``written`` is called when it is on its way to the kernel."""
        self._queue.put_nowait((message, written))

    def ping(self) -> None:
        """Queue a ping."""
        self._queue.put_nowait((Ping(time.monotonic()), None))

    async def write(self, send: Callable[[ClientMessage], Awaitable[None]], connection: TappedConnection) -> None:
        """Write until the connection is closed.

        Args:
            send: Writes a message, waiting while the connection's buffer is full.
            connection: Takes the pings.
        """
        with contextlib.suppress(ConnectionClosed):
            while True:
                item, written = await self._queue.get()
                if isinstance(item, Ping):
                    await connection.ping_behind(item.at)
                else:
                    await send(item)
                if written is not None:
                    written()
