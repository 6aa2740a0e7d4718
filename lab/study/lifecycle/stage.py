"""Where sessions meet a server, and what is left of one that was left."""

import asyncio
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LiveSession, Variant
from lab.live.lifecycle.endings import SessionError
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import ServerMessage
from lab.study.lifecycle.book import Life
from lab.study.lifecycle.servers import Server

SEEN_S = 10.0
"""Until a server tells of a connection, or lets a session be resumed."""

LOOK_S = 0.01

TURNS = 5
"""Of the event loop, for a reader to take what has come and wait for more."""


class Attempt(NamedTuple):
    """A connection as the client knows it."""

    port: int
    at: float
    """CLOCK_MONOTONIC seconds, when TCP stood."""


class Reading:
    """A reader of responses, as an application has one that keeps them alone: it waits while the session is left.

    Args:
        responses: What it reads.
    """

    def __init__(self, responses: Stream[ServerMessage]) -> None:
        self.responses = responses
        self.ended_at: float | None = None
        """CLOCK_MONOTONIC seconds: it came to a normal end."""
        self.failed = False
        """It was told an error in place of one."""
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Read in this event loop from now on; done when it waits for what has not come."""
        self._task = asyncio.ensure_future(self.read())
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def read(self) -> None:
        """Read to the end."""
        try:
            async for _ in self.responses:
                pass
        except SessionError:
            self.failed = True
        else:
            self.ended_at = self.ended_at or time.monotonic()

    async def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Opened(NamedTuple):
    """A session that is connected, told of by the server, and read."""

    session: LiveSession
    life: Life
    reading: Reading


@dataclass(slots=True)
class Left:
    """A session that was left."""

    life: Life
    """Its last connection, as the server tells of it."""

    at: float
    """CLOCK_MONOTONIC seconds: before whatever left it."""

    reading: Reading | None = None
    """Of its responses; None where they are gone with their process."""

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

    async def opened(self) -> Opened:
        """One that is connected, told of by the server, and read."""
        session, attempts = self.session()
        await session.connect()
        reading = Reading(session.responses)
        await reading.begin()
        return Opened(session, await self.seen(attempts), reading)

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


def left(session: LiveSession, life: Life, reading: Reading, *before: bool) -> Left:
    """A session that is about to be left, by whatever comes next.

    Args:
        session: It.
        life: Its connection.
        reading: Of its responses.
        before: What ``is_closed`` was earlier.
    """
    found = Left(life, time.monotonic(), reading, said=[*before, session.is_closed])

    def gone(_: object) -> None:
        found.gone_at = time.monotonic()

    found.service = weakref.ref(session._service, gone)  # noqa: SLF001 - a leak is shown by who is still there
    return found
