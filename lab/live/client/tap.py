"""websockets' client connection, tapped: it tells when octets come, and gives its transport for an abort.

Both links stand on it. websockets takes it as ``create_connection``, and google-genai hands that on from its public
``async_client_args``: so the watchdog's pings and the abort need no private attribute of either.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lab.live.client.kernel import Acknowledgements, look
from lab.live.client.link import Address, Ears, Ending
from lab.programs.report import errno_name

LINGER_S = 0.5
"""How long TCP's end is awaited after a close frame of the server's. The server SHOULD end TCP first, the client MAY
after a reasonable time (RFC 6455, 7.1.1). A FIN comes a round trip later; lost once, an RTO later still, which is a
round trip and 0.2 s at least (RFC 6298, Linux): in time where a round trip is 0.15 s at most. Then TCP is ended from
here, since websockets tells of an end when TCP is over."""


class TappedConnection(ClientConnection):
    """A connection that is listened to.

    Args:
        ears: Who is told.
        arguments: websockets' own.
    """

    def __init__(self, ears: Ears, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ears = ears
        self._pings: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._acknowledgements = Acknowledgements()
        self._lingering: asyncio.TimerHandle | None = None
        self._lost_by: Exception | None = None
        self._stands = False
        self.linger_s = LINGER_S
        self.aborted = False
        """Ended from here without a close frame."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP, and TLS where there is some, stand."""
        super().connection_made(transport)
        self._stands = True
        self._ears.connected(_address(transport, "sockname"), _address(transport, "peername"))

    def data_received(self, data: bytes) -> None:
        """Octets came."""
        self._ears.heard(time.monotonic())
        super().data_received(data)
        if self.protocol.close_rcvd_then_sent:
            self.linger()

    def linger(self) -> None:
        """Let TCP end by itself, for no longer than ``linger_s`` from the first time that this is called."""
        if self._lingering is None:
            self._lingering = asyncio.get_running_loop().call_later(self.linger_s, self.transport.abort)

    async def ping_behind(self, asked_at: float) -> None:
        """Send a ping; its pong is told in the background, with this instant.

        Raises:
            ConnectionClosed: it is.
        """
        task = asyncio.get_running_loop().create_task(self._await_pong(await self.ping(), asked_at))
        self._pings.add(task)
        task.add_done_callback(self._pings.discard)

    def close_behind(self, code: int, reason: str) -> None:
        """Queue a close frame and wait in the background until the connection is over."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(code, reason))

    def abort(self) -> None:
        """Close the socket at once."""
        self.aborted = True
        self.transport.abort()

    @property
    def stands(self) -> bool:
        """Whether TCP, and TLS where there is some, have come to stand."""
        return self._stands

    def unacknowledged(self, now: float) -> float | None:
        """Since when octets are unacknowledged by the peer's kernel."""
        return self._acknowledgements.since(look(self.opened_socket), now)

    @property
    def opened_socket(self) -> Any:
        """The transport's socket; None before TCP stands, and where asyncio has none any more.

        Over TLS it raises for that (``AttributeError``) once a transport was closed twice.
        """
        try:
            return self.transport.get_extra_info("socket")
        except AttributeError:
            return None

    @property
    def ending(self) -> Ending:
        """How it ended; for a connection that has."""
        error = self.protocol.close_exc
        if error.rcvd is not None:
            return Ending(error.rcvd.code, error.rcvd.reason, "us" if error.rcvd_then_sent is False else "server")
        by = "us" if self.aborted or error.sent is not None else "network"
        return Ending(None, "", by, errno_name(self._lost_by) if isinstance(self._lost_by, OSError) else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        self._lost_by = exc
        if self._lingering is not None:
            self._lingering.cancel()
        super().connection_lost(exc)

    async def _await_pong(self, pong: Awaitable[float], asked_at: float) -> None:
        with contextlib.suppress(ConnectionClosed):
            await pong
            self._ears.pong(asked_at, time.monotonic())

    async def _close(self, code: int, reason: str) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self.close(code, reason)


def _address(transport: asyncio.BaseTransport, name: str) -> Address:
    found = transport.get_extra_info(name) or ("", 0)
    return str(found[0]), int(found[1])
