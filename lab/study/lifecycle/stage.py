"""Where sessions meet a server, and what is left of one that was left."""

import asyncio
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LiveSession, Variant
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import ServerMessage
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.servers import Server

SEEN_S = 10.0
"""Until a server tells of a connection, or lets a session be resumed."""

LOOK_S = 0.01


class Attempt(NamedTuple):
    """A connection as the client knows it."""

    port: int
    at: float
    """CLOCK_MONOTONIC seconds, when TCP stood."""


@dataclass(slots=True)
class Left:
    """A session that was left."""

    life: Life
    """Its last connection, as the server tells of it."""

    at: float
    """CLOCK_MONOTONIC seconds: before whatever left it."""

    responses: Stream[ServerMessage] | None = None
    """None where they are gone with their process."""

    service: "weakref.ref[Service] | None" = None
    gone_at: float | None = None
    """When nothing held the service any more."""

    said: list[bool] = field(default_factory=list)
    """What ``is_closed`` was after each step, the last of them just before it was left."""

    here: bool = True
    """Its event loop is this one, and runs."""

    kept: list[Any] = field(default_factory=list)
    """Held until the end of the watch."""

    tidy: Callable[[], Awaitable[None]] | None = None
    """Ends what this path needed beside the session."""


class Stage:
    """Where sessions of one variant meet one server.

    Args:
        server: It.
        variant: Whose rules the sessions follow.
    """

    def __init__(self, server: Server, variant: Variant) -> None:
        self.server = server
        self.variant = variant

    def session(self) -> tuple[LiveSession, list[Attempt]]:
        """A session that is not connected, and its connections, oldest first."""
        attempts: list[Attempt] = []
        url = self.server.url

        def connected(ours: tuple[str, int], _: tuple[str, int]) -> None:
            attempts.append(Attempt(ours[1], time.monotonic()))

        def make() -> WebSocketWire:
            return WebSocketWire(url, connected=connected)

        return LiveSession(make, self.server.endpoint.setup(), self.variant), attempts

    async def opened(self) -> tuple[LiveSession, Life]:
        """One that is connected, and told of by the server."""
        session, attempts = self.session()
        await session.connect()
        return session, await self.seen(attempts)

    async def seen(self, attempts: Sequence[Attempt]) -> Life:
        """Wait until the server tells of the last of these connections.

        Raises:
            InvalidRun: it never did.
        """
        deadline = time.monotonic() + SEEN_S
        while not attempts or (life := self.server.book.find(*attempts[-1])) is None:
            if time.monotonic() > deadline:
                ports = [attempt.port for attempt in attempts]
                raise InvalidRun(f"{self.server.endpoint.name} did not tell of the connection from {ports}.")
            await asyncio.sleep(LOOK_S)
        return life


def left(session: LiveSession, life: Life, *before: bool) -> Left:
    """A session that is about to be left, by whatever comes next.

    Args:
        session: It.
        life: Its connection.
        before: What ``is_closed`` was earlier.
    """
    found = Left(life, time.monotonic(), session.responses, said=[*before, session.is_closed])

    def gone(_: object) -> None:
        found.gone_at = time.monotonic()

    found.service = weakref.ref(session._service, gone)  # noqa: SLF001 - a leak is shown by who is still there
    return found
