"""Every close code, who sent it and how, and what the application is told.

Prediction: the lab's session names who closed, and with which code, to the reader and to later sends, as soon as the
close frame is there. As published an end is told by its code alone: a server's 1001 passes for the user's own close, so
that the reader waits for ever and sends vanish; every other end is an unexpected closure. A close of our own that the
server's crosses is ours, in both.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lab.core.errors import InvalidRun
from lab.live.lifecycle import VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import ABNORMAL, Party, SessionError
from lab.live.lifecycle.peer import SILENCE, VANISH, cross, end, peer, say
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import Setup

CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4000)
"""All that a server may put in a close frame (RFC 6455 section 7.4, and IANA's registry), one of each private range."""

SOME = (1000, 1001, 1011)
"""Codes of the ends that are shown with some only: a normal one, the user's as published, and any other."""

TURNS = 50
"""Of the event loop after the end has come, in which reader and sender are told, or never: nothing between the socket's
end and them needs the network."""

END_S = 10.0
"""For anything that comes over loopback, on a busy machine too."""

TOLD_S = 2.0
"""From the wish to the end at the socket. Loopback takes milliseconds; a client that waits for the server's FIN behind
the close frame waits for ever."""

_LOOK_S = 0.01

SETUP, OPEN = "setup", "open"

FRAME, KEPT, GONE, CROSSED = "close frame", "close frame, TCP kept", "TCP alone", "crosses the server's"
"""How it ends: a close frame with TCP's end behind it, one without, TCP's end without one, our close frame and the
server's under way at once."""


@dataclass(frozen=True, slots=True)
class End:
    """One way to end."""

    phase: str
    how: str
    by: Party
    code: int
    """The server's; 1006 where nobody sends one, 0 where we alone do."""


@dataclass(frozen=True, slots=True)
class CloseRow:
    """One end."""

    client: str
    phase: str
    """setup: before the session stands; open: after."""

    how: str
    """close frame, which is followed by TCP's end; close frame, TCP kept; TCP alone; crosses the server's."""

    code: int
    """The server's; our own where it sends none by itself, 1006 where nobody does."""

    by: str
    """us, server, network."""

    connect: str
    """What ``connect`` was told."""

    reader: str
    """What who reads the responses is told."""

    sender: str
    """What who sends afterwards is told."""

    is_closed: bool
    ok: bool
    """Who closed, and with which code, can be told from it."""


def ends() -> list[End]:
    """Every end of the table."""
    return [
        *(End(phase, FRAME, Party.SERVER, code) for phase in (SETUP, OPEN) for code in CODES),
        *(End(phase, KEPT, Party.SERVER, code) for phase in (SETUP, OPEN) for code in SOME),
        *(End(phase, GONE, Party.NETWORK, ABNORMAL) for phase in (SETUP, OPEN)),
        *(End(phase, FRAME, Party.US, 0) for phase in (SETUP, OPEN)),
        *(End(OPEN, CROSSED, Party.US, code) for code in SOME),
    ]


async def rows(variants: Iterable[Variant] = VARIANTS.values()) -> list[CloseRow]:
    """The table; every session on a connection of its own, all at once.

    Raises:
        InvalidRun: two closes that were to cross did not.
    """
    async with peer() as url:
        return await asyncio.gather(*(_row(url, variant, one) for variant in variants for one in ends()))


def as_json(found: Iterable[CloseRow]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


class _Opening(WebSocketWire):
    """Tells when its WebSocket is open."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.opened = asyncio.Event()

    async def open(self) -> None:
        await super().open()
        self.opened.set()


async def _row(url: str, variant: Variant, one: End) -> CloseRow:
    wire = _Opening(url)
    session = LiveSession(lambda: wire, Setup(_wish(one) if one.phase == SETUP else "m"), variant)
    async with asyncio.timeout(END_S):
        connect = await (
            _closed_in_setup(session, wire) if one.phase == SETUP and one.by is Party.US else _open(session)
        )
        if one.phase == OPEN:
            await anext(session.responses)
            await _end(session, wire, one)
    reader = await _told(_read(session)) if connect == _FINE else "-"
    sender = await _told(session.send_text("late")) if connect == _FINE else "-"
    closed = session.is_closed
    await session.close()
    said = f"{one.by.value} {one.code}" if one.by is Party.SERVER else one.by.value
    right = connect.endswith(said) if one.phase == SETUP else _right(one, said, reader, sender)
    code = one.code or variant.close_code
    return CloseRow(
        variant.name, one.phase, one.how, code, one.by.value, connect, reader, sender, closed, ok=right and closed
    )


_FINE, _NOTHING = "no error", "nothing"


def _right(one: End, said: str, reader: str, sender: str) -> bool:
    if one.by is Party.US:
        return reader == _NOTHING and sender.endswith(said)
    return reader.endswith(said) and sender.endswith(said)


def _wish(one: End) -> str:
    """What the peer is to do."""
    if one.by is Party.US:
        return cross(one.code) if one.how == CROSSED else SILENCE
    if one.by is Party.NETWORK:
        return VANISH
    return say(one.code) if one.how == KEPT else end(one.code)


async def _open(session: LiveSession) -> str:
    """Connect; what it was told, at the latest when an end should have come."""
    connecting = asyncio.ensure_future(session.connect())
    await asyncio.wait({connecting}, timeout=TOLD_S)
    return await _told(connecting)


async def _closed_in_setup(session: LiveSession, wire: _Opening) -> str:
    """Close while the server is silent about the setup; what ``connect`` was told."""
    connecting = asyncio.ensure_future(session.connect())
    await wire.opened.wait()
    await session.close()
    return await _told(connecting)


async def _end(session: LiveSession, wire: WebSocketWire, one: End) -> None:
    """End it, or have the peer end it and wait until the socket has it."""
    if one.by is not Party.US:
        await _ended(session, _wish(one))
        return
    if one.how == CROSSED:
        await session.send_text(_wish(one))
        await anext(session.responses)
    await session.close()
    if one.how == CROSSED:
        connection = wire._connection  # noqa: SLF001 - a server's answer to our close would have our code
        came = None if connection is None else connection.protocol.close_rcvd
        if came is None or came.code != one.code:
            raise InvalidRun(f"The server's close {one.code} did not cross ours: what came was {came}.")


async def _ended(session: LiveSession, wish: str) -> None:
    """Ask the peer for the end, and wait until the socket has it; not for ever."""
    socket = session._service._socket  # noqa: SLF001 - nobody is told of the end in some variants, but it has come
    assert socket is not None
    await session.send_text(wish)
    until = time.monotonic() + TOLD_S
    while not socket.messages.finished and socket.messages.error is None and time.monotonic() < until:
        await asyncio.sleep(_LOOK_S)


async def _told(waiting: Awaitable[None]) -> str:
    """What comes of it by now: nothing, no error, or an error with whoever it names."""
    task = asyncio.ensure_future(waiting)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return _NOTHING
    error = task.exception()
    if isinstance(error, OSError):
        raise error  # the machine's: nothing that a session says of an end
    return _FINE if error is None else _worded(error)


def _worded(error: BaseException) -> str:
    name = type(error).__name__
    if not isinstance(error, SessionError) or error.closure is None:
        return name
    by, code = error.closure.by, error.closure.code
    named = name != "UnexpectedClosure"
    return f"{name}: {by.value} {code}" if named and by is Party.SERVER else f"{name}: {by.value if named else code}"


async def _read(session: LiveSession) -> None:
    async for _ in session.responses:
        pass
