"""Both ends of a connection, over each carrier, and what a test waits for."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from lab.host.protocol.messages import RunResult
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.host import SessionHost
from lab.host.shell.remote import RemoteSession
from lab.host.shell.transport import StreamTransport, Transport
from lab.host.tables.stage import TCP, WEBSOCKET

SOON_S = 10.0
"""For anything that comes at once on a machine that is not busy."""

CARRIERS = [TCP, WEBSOCKET]


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it, within a deadline; a task that fails beside it fails it."""
    defects: list[dict[str, Any]] = []

    async def bounded() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: defects.append(context))
        async with asyncio.timeout(2 * SOON_S):
            await scenario()

    asyncio.run(bounded())
    assert defects == []


async def until(condition: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(SOON_S):
            while not condition():
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(f"in {SOON_S} s it did not come that {what}") from None


async def stream(end: socket.socket) -> StreamTransport:
    return StreamTransport(*await asyncio.open_connection(sock=end))


def stop_reading(transport: Any) -> None:
    """What a stopped program does: its kernel takes what fits, and no more."""
    bare = getattr(transport, "_connection", None) or transport._writer
    bare.transport.pause_reading()


def go_on_reading(transport: Any) -> None:
    """And then goes on."""
    bare = getattr(transport, "_connection", None) or transport._writer
    bare.transport.resume_reading()


@contextlib.asynccontextmanager
async def raw() -> AsyncIterator[tuple[StreamTransport, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A transport, and the bare other end of its stream."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=theirs)
    made = await stream(ours)
    try:
        yield made, reader, writer
    finally:
        made.abort()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def hosted(**options: Any) -> AsyncIterator[tuple[SessionHost, RemoteSession, Transport]]:
    """A host without an owner, its remote, and the remote's transport."""
    ours, theirs = socket.socketpair()
    near, far = await stream(ours), await stream(theirs)
    host, remote = SessionHost(near, **options), RemoteSession(far)
    try:
        yield host, remote, far
    finally:
        await remote.close()
        await host.close()


async def asked(host: SessionHost, remote: RemoteSession) -> "tuple[ScriptedAgent, asyncio.Future[RunResult]]":
    """An agent that has heard something and has not answered it, and the remote's request."""
    agent = ScriptedAgent("s1", "room")
    host.register_session(agent)
    agent.ready.clear()
    asking = asyncio.ensure_future(remote.run_input("hello"))
    await until(lambda: remote._events.qsize() == 2, "the agent thinks, and has heard it")
    return agent, asking
