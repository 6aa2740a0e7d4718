"""A link on websockets, speaking the protocol itself."""

import asyncio
import ssl as tls
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab.live.client.link import Address, Ears, Ending, Phase
from lab.live.client.outcomes import CONNECT_OPTIONS, outcome_of
from lab.live.client.tap import TappedConnection
from lab.live.client.tapped_link import TappedLink
from lab.live.protocol import wire
from lab.live.protocol.messages import ClientMessage, Setup


class WireLink(TappedLink):
    """A connection of the lab's own client.

    Args:
        url: ``ws://`` or ``wss://`` with the service's path.
        ears: Who is told what it notices.
        ssl: What to trust, for ``wss://``.
        headers: Of the handshake.
    """

    def __init__(
        self, url: str, ears: Ears, *, ssl: tls.SSLContext | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(ears)
        self._url = url
        self._ssl = ssl
        self._headers = headers or {}

    async def connect(self, setup: Setup) -> None:
        """Connect, send the setup, wait for its answer. See ``Link``."""
        self._begin()
        try:
            await connect(
                self._url,
                additional_headers=self._headers,
                ssl=self._ssl,
                proxy=None,
                compression=None,
                create_connection=self._make,  # type: ignore[arg-type]  # it is called, never subclassed
                **CONNECT_OPTIONS,
            )
            made = self._made
            assert made is not None
            self._phase = Phase.SETUP
            await self._set_up(made, setup)
        except BaseException as error:
            self._come_to_nothing()
            if (meant := outcome_of(error, self._phase)) is None:
                raise
            raise meant from error
        self._phase, self._connecting = Phase.OPEN, None
        loop = asyncio.get_running_loop()
        writing = self._outbox.write(lambda message: _put(made, message), made)
        self._tasks = [loop.create_task(self._read(made)), loop.create_task(writing)]

    def _make(self, *arguments: Any, **options: Any) -> TappedConnection:
        self._made = TappedConnection(_Noting(self._ears, self._on_connected), *arguments, **options)
        return self._made

    def _on_connected(self) -> None:
        self._phase = Phase.UPGRADE

    async def _set_up(self, connection: ClientConnection, setup: Setup) -> None:
        await _put(connection, setup)
        while True:
            message = wire.parse_server(await connection.recv())
            self._inbox.put(message)
            if message.setup_complete is not None:
                return

    async def _read(self, connection: TappedConnection) -> None:
        try:
            async for data in connection:
                self._inbox.put(wire.parse_server(data))
        except ConnectionClosed:
            pass  # Its ending says how.
        except wire.ProtocolError as error:
            self._ending = Ending(None, "", "us", f"what came is not the protocol: {error}")
            self.close(1007)
        self._ending = self._ending or connection.ending
        self._inbox.end()


class _Noting:
    """Ears that first tell the link itself."""

    def __init__(self, ears: Ears, on_connected: Callable[[], None]) -> None:
        self._on_connected = on_connected
        self._ears = ears

    def connected(self, local: Address, remote: Address) -> None:
        self._on_connected()
        self._ears.connected(local, remote)

    def heard(self, at: float) -> None:
        self._ears.heard(at)

    def pong(self, sent_at: float, at: float) -> None:
        self._ears.pong(sent_at, at)


async def _put(connection: ClientConnection, message: ClientMessage) -> None:
    await connection.send(wire.encode(message).decode("ascii"))
