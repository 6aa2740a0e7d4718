"""The paths by which a session is left, one function each.

Every one of them connects, waits until the server counts the connection, and then leaves: what the server no longer
counts afterwards it did count before.
"""

import asyncio
import contextlib
import json
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.core.errors import InvalidRun
from lab.live.lifecycle import LiveSession, Variant
from lab.live.lifecycle.endings import SetupRefused, UnexpectedClosure
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import ServerMessage
from lab.study.lifecycle.census import Census
from lab.study.lifecycle.servers import Server

SEEN_S = 10.0
"""Until a server counts a connection, or lets a session be resumed."""

LOOK_S = 0.02

RELEASED = "released, stream kept"
CLOSED = "closed"
CLOSED_RELEASED = "closed, then released"
RESUMED = "resumed after close, then released"
SENDING = "released, a send queued"
CONNECTING = "released during connect"
STANDING = "released, event loop not running"
EXIT = "interpreter exit"

QUEUED = 10
"""Sends that wait at the release, of a tenth of a second of speech each."""


@dataclass(slots=True)
class Left:
    """A session that was left."""

    port: int
    """The client's, of its last connection."""

    at: float
    """CLOCK_MONOTONIC seconds."""

    responses: Stream[ServerMessage] | None = None
    """None where they are gone with their process."""

    service: "weakref.ref[Service] | None" = None
    is_closed: bool | None = None
    """None where nobody is left to be asked."""

    kept: list[Any] = field(default_factory=list)
    """Held until the end of the watch."""

    tidy: Callable[[], Awaitable[None]] | None = None
    """Ends what this path needed beside the session."""


class Stage:
    """Where sessions of one variant meet one server.

    Args:
        server: It.
        variant: Whose rules the sessions follow.
        census: What the server counts.
    """

    def __init__(self, server: Server, variant: Variant, census: Census) -> None:
        self.server = server
        self.variant = variant
        self._census = census

    def session(self) -> tuple[LiveSession, list[int]]:
        """A session that is not connected, and the ports of its connections, oldest first."""
        ports: list[int] = []
        url = self.server.url

        def make() -> WebSocketWire:
            return WebSocketWire(url, connected=lambda ours, _: ports.append(ours[1]))

        return LiveSession(make, self.server.endpoint.setup(), self.variant), ports

    async def opened(self) -> tuple[LiveSession, list[int]]:
        """One that is connected and counted by the server."""
        session, ports = self.session()
        await session.connect()
        await self.seen(ports)
        return session, ports

    async def seen(self, ports: Sequence[int]) -> None:
        """Wait until the server counts the last of these connections.

        Raises:
            InvalidRun: it never did.
        """
        deadline = time.monotonic() + SEEN_S
        while not ports or not self._census.counted(self.server, ports[-1]):
            if time.monotonic() > deadline:
                raise InvalidRun(f"{self.server.endpoint.name} did not count the connection from {ports}.")
            await asyncio.sleep(LOOK_S)


def _left(session: LiveSession, ports: Sequence[int]) -> Left:
    service = session._service  # noqa: SLF001 - a leak is shown by who is still there
    return Left(ports[-1], time.monotonic(), session.responses, weakref.ref(service))


def _unread(answer: "asyncio.Future[None]") -> None:
    """Nobody waits for this one; kept, its exception would hold what raised it."""
    if not answer.cancelled():
        answer.exception()


async def released(stage: Stage) -> Left:
    """The last reference goes; its responses are kept."""
    session, ports = await stage.opened()
    return _left(session, ports)


async def closed(stage: Stage) -> Left:
    """Closed, and held."""
    session, ports = await stage.opened()
    left = _left(session, ports)
    await session.close()
    left.is_closed = session.is_closed
    left.kept.append(session)
    return left


async def closed_and_released(stage: Stage) -> Left:
    """Closed, and the last reference goes."""
    session, ports = await stage.opened()
    left = _left(session, ports)
    await session.close()
    return left


async def resumed(stage: Stage) -> Left:
    """Closed, resumed once the server lets it, and released."""
    session, ports = await stage.opened()
    async with asyncio.timeout(SEEN_S):
        while session.handle is None:
            await anext(session.responses)
    await session.close()
    deadline = time.monotonic() + SEEN_S
    while session.is_closed:
        try:
            await session.resume()
        except (SetupRefused, UnexpectedClosure):  # The server lets a session settle; each answer takes half a second.
            if time.monotonic() > deadline:
                raise
    await stage.seen(ports)
    return _left(session, ports)


async def sending(stage: Stage) -> Left:
    """Released with sends that no kernel has taken."""
    session, ports = await stage.opened()
    for _ in range(QUEUED):
        asyncio.ensure_future(session.send_audio(bytes(3200))).add_done_callback(_unread)
    return _left(session, ports)


async def connecting(stage: Stage) -> Left:
    """Released when TCP stands and the setup is under way."""
    session, ports = stage.session()
    attempt = asyncio.ensure_future(session.connect())
    attempt.add_done_callback(_unread)
    left = Left(0, 0.0, session.responses, weakref.ref(session._service))  # noqa: SLF001 - see above
    await stage.seen(ports)
    left.port, left.at = ports[-1], time.monotonic()
    return left


async def standing(stage: Stage) -> Left:
    """Released between two runs of its event loop, which goes on only after the watch."""
    loop = asyncio.get_running_loop()
    left: asyncio.Future[Left] = loop.create_future()
    watched = threading.Event()
    ended = asyncio.Event()

    def live() -> None:
        try:
            with asyncio.Runner() as runner:
                found = _left(*runner.run(stage.opened()))
                found.at = time.monotonic()
                loop.call_soon_threadsafe(left.set_result, found)
                watched.wait()
                leaked = found.service() if found.service is not None else None
                if leaked is not None:
                    runner.run(leaked.close())
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            loop.call_soon_threadsafe(_failed, left, error)
        loop.call_soon_threadsafe(ended.set)

    async def tidy() -> None:
        watched.set()
        await ended.wait()

    threading.Thread(target=live, name="a loop that stands still", daemon=True).start()
    found = await left
    found.tidy = tidy
    return found


def _failed(left: "asyncio.Future[Left]", error: Exception) -> None:
    if not left.done():
        left.set_exception(error)


WAYS: Mapping[str, Callable[[Stage], Awaitable[Left]]] = {
    RELEASED: released,
    CLOSED: closed,
    CLOSED_RELEASED: closed_and_released,
    RESUMED: resumed,
    SENDING: sending,
    CONNECTING: connecting,
    STANDING: standing,
}
"""Each path within this process."""


async def exits(stages: Sequence[Stage]) -> list[Left]:
    """The path out of the process: one program with a session to each server, all of one variant, ends."""
    to = [[stage.server.url, stage.server.endpoint.model] for stage in stages]
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lab.live.lifecycle.leaver"),
        json.dumps({"variant": stages[0].variant.name, "to": to}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        async with asyncio.timeout(SEEN_S):
            said = await program.stdout.readline()
        if not said:
            raise InvalidRun("The program that is to end with open sessions did not connect.")
        ports = json.loads(said)["ports"]
        for stage, port in zip(stages, ports, strict=True):
            await stage.seen([port])
        program.stdin.write(b"end\n")
        async with asyncio.timeout(SEEN_S):
            await program.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        await program.wait()
    return [Left(port, time.monotonic()) for port in ports]
