"""A session server in this process, and clients of it."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from lab.live.protocol.paths import developer
from lab.live.server.serving import Options, Parts, Serving, serving
from lab.live.session.ports import Model
from lab.live.session.profile import DEFAULT, Profile
from tests.live.session.fakes import FakeEar, FakeModel

HOST = "127.0.0.1"

PROMPT = DEFAULT.with_(setup_s="0.01", resume_setup_s="0.01", refusal_s="0.05", settle_s="0.1")
"""The default, without its waits."""

SOON_S = 5.0
"""For anything that comes at once on a machine that is not busy."""

SETUP = {"setup": {"model": "models/m", "sessionResumption": {}}}


def parts(model: Callable[[], Model] = FakeModel) -> Parts:
    return Parts(lambda _profile, _setup, _draw: model(), FakeEar, lambda pcm: pcm.decode("latin-1"))


@contextlib.asynccontextmanager
async def served(profile: Profile = PROMPT, *, made: Parts | None = None, **options: Any) -> AsyncIterator[Serving]:
    wanted: dict[str, Any] = {"host": HOST, "status_host": HOST, "seed": 1} | options
    async with serving(Options(profile=profile, **wanted), made or parts()) as server:
        yield server


def url(server: Serving, path: str = developer()) -> str:
    return f"ws://{HOST}:{server.port('ws')}{path}"


async def say(client: ClientConnection, message: Any) -> None:
    await client.send(message if isinstance(message, str | bytes) else json.dumps(message))


async def hear(client: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(SOON_S):
        data = await client.recv()
    assert isinstance(data, bytes), "the server talks in binary frames"
    found: dict[str, Any] = json.loads(data)
    return found


@contextlib.asynccontextmanager
async def session(server: Serving) -> AsyncIterator[tuple[ClientConnection, str]]:
    """A client that is set up, and its handle."""
    async with connect(url(server), ping_interval=None, close_timeout=1) as client:
        await say(client, SETUP)
        assert "setupComplete" in await hear(client)
        handle = (await hear(client))["sessionResumptionUpdate"]["newHandle"]
        yield client, handle


def resume(handle: str) -> dict[str, Any]:
    return {"setup": {"model": "models/m", "sessionResumption": {"handle": handle}}}


async def closed(client: ClientConnection) -> tuple[int | None, str | None]:
    """The code and the reason with which the server ends it."""
    async with asyncio.timeout(SOON_S):
        async for _ in _all(client):
            pass
        await client.wait_closed()
    return client.close_code, client.close_reason


async def _all(client: ClientConnection) -> AsyncIterator[Any]:
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed):
        while True:
            yield await client.recv()


async def works(client: ClientConnection) -> bool:
    """Whether a session still hears and answers pings: a result for no call is taken in silence."""
    async with asyncio.timeout(SOON_S):
        await (await client.ping())
    return client.close_code is None


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = asyncio.get_running_loop().time() + SOON_S
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"{what}: not within {SOON_S} s"
        await asyncio.sleep(0.01)


def state(server: Serving, index: int = 0) -> str:
    status = server.shell.house.status(now=server.shell.clock.now())
    return status.sessions[index].state


def reset(client: ClientConnection) -> None:
    """Abort with RST."""
    raw = client.transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.transport.abort()


def upgrade(server: Serving) -> bytes:
    lines: list[Any] = [
        f"GET {developer()} HTTP/1.1",
        f"Host: {HOST}:{server.port('ws')}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def masked(message: object) -> bytes:
    """A client's text frame; the mask is zero."""
    payload = json.dumps(message).encode()
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload)]) + bytes(4) + payload
