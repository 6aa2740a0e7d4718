"""Sessions with a peer on loopback, and what tests wait for."""

import asyncio
import contextlib
import gc
import ssl as tls
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from lab.live.client.link import Address
from lab.live.lifecycle import LAB, LiveSession, Variant
from lab.live.lifecycle.peer import peer
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol import wire
from lab.live.protocol.messages import ServerMessage, Setup, SetupComplete

DEADLINE_S = 5.0
"""The contract's own, from release to the end of connection and stream."""

TURNS = 20
"""Of the event loop: more than anything takes that needs no network."""

Scene = Callable[[str], Awaitable[None]]


def play(scene: Scene) -> None:
    """Let a scene meet a peer."""

    async def scenario() -> None:
        async with asyncio.timeout(4 * DEADLINE_S), peer() as url:
            await scene(url)

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def noting(ssl: tls.SSLContext | None = None) -> AsyncIterator[tuple[str, "asyncio.Queue[int | None]"]]:
    """A server that sets up each session and says nothing more: its URL, and the close codes that it came to see."""
    codes: asyncio.Queue[int | None] = asyncio.Queue()

    async def handle(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await connection.recv()
            await connection.send(wire.encode(ServerMessage(setup_complete=SetupComplete())))
        await connection.wait_closed()
        codes.put_nowait(connection.close_code)

    async with serve(handle, "127.0.0.1", 0, ping_interval=None, ssl=ssl) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"{'ws' if ssl is None else 'wss'}://127.0.0.1:{port}", codes


def session_to(url: str, variant: Variant = LAB, *, model: str = "m", ports: list[int] | None = None) -> LiveSession:
    def connected(ours: Address, _: Address) -> None:
        if ports is not None:
            ports.append(ours[1])

    return LiveSession(lambda: WebSocketWire(url, connected=connected), Setup(model), variant)


async def opened(url: str, variant: Variant = LAB) -> LiveSession:
    """A session that is connected; its setup's answer is read."""
    session = session_to(url, variant)
    await session.connect()
    async with asyncio.timeout(DEADLINE_S):
        first = await anext(session.responses)
    assert first.setup_complete is not None
    return session


async def read_out(responses: Stream[ServerMessage]) -> list[ServerMessage]:
    async with asyncio.timeout(DEADLINE_S):
        return [message async for message in responses]


async def pends(responses: Stream[ServerMessage]) -> bool:
    """Whether a reader gets nothing, no message, no error, no end, of what has happened up to now."""
    reading = asyncio.ensure_future(anext(responses))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    reading.cancel()
    return not reading.done()


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"{what}: not within {DEADLINE_S} s"
        await asyncio.sleep(0.01)


async def gone(what: "weakref.ref[Service]") -> None:
    """Wait until nobody holds it."""

    def is_gone() -> bool:
        gc.collect()
        return what() is None

    await until(is_gone, "released")
