"""The close race through a whole session: the same two orders forced, with a reader that waits and later sends.

``race`` has every order, stepped by hand at the socket; here ``LiveSession``, its service and its tasks are those of an
application, on asyncio, and only the wire is none.
"""

import asyncio
from typing import NamedTuple

from lab.live.lifecycle import LiveSession, Variant
from lab.live.lifecycle.endings import ABNORMAL, ClosedHere, Closure, Party, SessionError, WireEnded
from lab.live.lifecycle.stream import Stream
from lab.live.protocol.messages import ServerMessage, Setup, SetupComplete
from lab.live.protocol.wire import encode

TURNS = 50
"""Of the event loop, in which whatever can go on has: nothing here waits for a network or a clock."""

ROUNDS = 4
"""Of so many turns each, for a close: the wire takes one for its own part."""

READY = encode(ServerMessage(setup_complete=SetupComplete()))


class Ends(NamedTuple):
    """One run."""

    reader_right: bool
    """Nothing came after the close, and a normal end after the release."""

    recorded_first: bool
    sends_right: bool


class ForcedWire:
    """A wire without a network, whose pending receive fails at a cancel: in the midst of it, or behind it.

    Args:
        receive_first: The cancel returns when whoever receives has come to its end. Else it returns at once, and the
            receive fails later.
    """

    def __init__(self, *, receive_first: bool) -> None:
        self.first: Closure | None = None
        """The end that came first, by the wire's own account."""
        self._receive_first = receive_first
        self._coming: asyncio.Queue[bytes | Closure] = asyncio.Queue()
        self._coming.put_nowait(READY)
        self._ending: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Is open."""

    async def receive(self) -> str | bytes:
        """The setup's answer, and then the end."""
        came = await self._coming.get()
        if isinstance(came, Closure):
            raise WireEnded(came)
        return came

    async def send(self, data: bytes) -> None:
        """Lead nowhere."""

    async def cancel(self, code: int, reason: str) -> None:
        """Let the receive fail, in the order that is forced."""
        if self._ending is not None:
            return
        self.first = Closure(Party.US, code, reason)
        failed = Closure(Party.US, ABNORMAL)
        if self._receive_first:
            self._ending = asyncio.ensure_future(asyncio.sleep(0))
            self._coming.put_nowait(failed)
            await turns()
        else:
            self._ending = asyncio.ensure_future(self._later(failed))

    def leave(self, code: int, reason: str) -> None:
        """Lead nowhere."""

    async def _later(self, failed: Closure) -> None:
        await turns()
        self._coming.put_nowait(failed)


async def turns() -> None:
    """Let everything go on that can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def run(variant: Variant, *, receive_first: bool) -> Ends:
    """Close a session in one order, send, and release it."""
    return asyncio.run(_run(variant, receive_first=receive_first))


async def _run(variant: Variant, *, receive_first: bool) -> Ends:
    wire = ForcedWire(receive_first=receive_first)
    session = LiveSession(lambda: wire, Setup("m"), variant)
    await session.connect()
    await anext(session.responses)
    socket = session._service._socket  # noqa: SLF001 - what it records is shown to nobody
    assert socket is not None
    reader = asyncio.ensure_future(_read(session.responses))
    await turns()
    closing = asyncio.ensure_future(session.close())
    for _ in range(ROUNDS):  # a close that waits for ever is seen as one, and does not hold up who asks
        await turns()
    waits = closing.done() and not reader.done()
    closing.cancel()
    try:
        await session.send_text("late")
    except SessionError as error:
        sends_right = isinstance(error, ClosedHere)
    else:
        sends_right = False
    del session
    await turns()
    normal = reader.done() and not reader.cancelled() and reader.exception() is None
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    return Ends(waits and normal, socket.recorded == wire.first, sends_right)


async def _read(responses: Stream[ServerMessage]) -> None:
    async for _ in responses:
        pass
