"""A server that ends a session as it is told: in the setup by its model's name, later by a text.

``end 1011`` sends that close frame, ``say 1011`` sends it and keeps TCP open, ``cross 1011`` is answered and sends it
when something of the client's has come that it has not read, ``vanish`` ends TCP without one, ``silence`` gets no
answer; anything else is answered, a setup in a binary frame and a text in a text frame.
"""

import asyncio
import contextlib
import fcntl
import functools
import ssl as tls
import sys
import termios
from collections.abc import AsyncIterator

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from lab.live.protocol import wire
from lab.live.protocol.messages import RealtimeInput, ServerContent, ServerMessage, Setup, SetupComplete, Transcription

VANISH, SILENCE = "vanish", "silence"
LOOK_S = 0.01
SAYS = ServerMessage(server_content=ServerContent(output_transcription=Transcription("heard")))


def end(code: int) -> str:
    """The text that asks for a close frame, and TCP's end behind it."""
    return f"end {code}"


def say(code: int) -> str:
    """The text that asks for a close frame alone: TCP stays open, and the server reads no more."""
    return f"say {code}"


def cross(code: int) -> str:
    """The text that asks for a close frame which crosses the client's own: after the answer to it, close."""
    return f"cross {code}"


@contextlib.asynccontextmanager
async def peer(ssl: tls.SSLContext | None = None) -> AsyncIterator[str]:
    """The server on loopback; its URL.

    Args:
        ssl: Its certificate, for clients that speak to nobody without.
    """
    kept: list[asyncio.Transport] = []
    talk = functools.partial(_talk, kept)
    async with serve(talk, "127.0.0.1", 0, ping_interval=None, close_timeout=1, compression=None, ssl=ssl) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield f"{'ws' if ssl is None else 'wss'}://127.0.0.1:{port}"
        finally:
            for transport in kept:
                transport.abort()


async def _talk(kept: list[asyncio.Transport], connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for data in connection:
            message = wire.parse_client(data)
            wish = message.model.removeprefix("models/") if isinstance(message, Setup) else _text(message)
            if wish == VANISH:
                connection.transport.abort()
            elif wish.startswith("end "):
                await connection.close(int(wish.removeprefix("end ")), "as told")
            elif wish.startswith("say "):
                connection.protocol.send_close(int(wish.removeprefix("say ")), "as told")
                connection.send_data()
                connection.transport.pause_reading()  # an answer that is read would end TCP
                kept.append(connection.transport)
            elif wish.startswith("cross "):
                await _cross(connection, int(wish.removeprefix("cross ")))
            elif wish == SILENCE:
                continue
            elif isinstance(message, Setup):
                await connection.send(wire.encode(ServerMessage(setup_complete=SetupComplete())))
            else:
                await connection.send(wire.encode(SAYS).decode("ascii"))


async def _cross(connection: ServerConnection, code: int) -> None:
    """Close while the client's close lies unread in the kernel, as it does when the two are under way at once."""
    connection.transport.pause_reading()
    await connection.send(wire.encode(SAYS))
    unread = bytes(4)
    while not int.from_bytes(unread, sys.byteorder):
        await asyncio.sleep(LOOK_S)
        unread = fcntl.ioctl(connection.transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
    connection.protocol.send_close(code, "as told")
    connection.send_data()
    connection.transport.resume_reading()


def _text(message: object) -> str:
    return message.text or "" if isinstance(message, RealtimeInput) else ""
