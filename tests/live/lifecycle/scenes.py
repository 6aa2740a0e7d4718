"""Sessions with a peer on loopback, and what tests wait for."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

from lab.live.client.link import Address
from lab.live.lifecycle import LAB, LiveSession, Variant
from lab.live.lifecycle.peer import peer
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import Setup

DEADLINE_S = 5.0
"""The contract's own, from release to the end of connection and stream."""

Scene = Callable[[str], Awaitable[None]]


def play(scene: Scene) -> None:
    """Let a scene meet a peer."""

    async def scenario() -> None:
        async with asyncio.timeout(4 * DEADLINE_S), peer() as url:
            await scene(url)

    asyncio.run(scenario())


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
