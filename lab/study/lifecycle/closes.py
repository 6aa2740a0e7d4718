"""Every close code, who sent it, and what the application is told.

Prediction: the lab's session names who closed, and with which code, to the reader and to later sends. As published an
end is told by its code alone: a server's 1001 passes for the user's own close, so that the reader waits for ever and
sends vanish; every other end is an unexpected closure.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lab.live.lifecycle import VARIANTS, LiveSession, Variant
from lab.live.lifecycle.endings import ABNORMAL, Party, SessionError
from lab.live.lifecycle.peer import VANISH, end, peer
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import Setup

CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4000)
"""All that a server may put in a close frame (RFC 6455 section 7.4, and IANA's registry), one of each private range."""

TURNS = 50
"""Of the event loop after the end has come, in which reader and sender are told, or never: nothing between the socket's
end and them needs the network."""

END_S = 10.0
"""For anything that comes over loopback, on a busy machine too."""

_LOOK_S = 0.01

SETUP, OPEN = "setup", "open"


@dataclass(frozen=True, slots=True)
class CloseRow:
    """One end."""

    client: str
    phase: str
    """setup: before the session stands; open: after."""

    code: int
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


async def rows(variants: Iterable[Variant] = VARIANTS.values()) -> list[CloseRow]:
    """The table; every session on a connection of its own, all at once."""
    async with peer() as url:
        return await asyncio.gather(
            *(
                _row(url, variant, phase, code, by)
                for variant in variants
                for phase in (SETUP, OPEN)
                for code, by in _ends(phase)
            )
        )


def as_json(found: Iterable[CloseRow]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


def _ends(phase: str) -> list[tuple[int, Party]]:
    ends = [*((code, Party.SERVER) for code in CODES), (ABNORMAL, Party.NETWORK)]
    return ends if phase == SETUP else [*ends, (0, Party.US)]


async def _row(url: str, variant: Variant, phase: str, code: int, by: Party) -> CloseRow:
    wish = end(code) if by is Party.SERVER else VANISH
    session = LiveSession(lambda: WebSocketWire(url), Setup(wish if phase == SETUP else "m"), variant)
    async with asyncio.timeout(END_S):
        (error,) = await asyncio.gather(session.connect(), return_exceptions=True)
        connect = _FINE if error is None else _worded(error)
        if phase == OPEN:
            await anext(session.responses)
            if by is Party.US:
                await session.close()
                code = variant.close_code
            else:
                await _ended(session, wish)
    reader = await _told(_read(session)) if connect == _FINE else "-"
    sender = await _told(session.send_text("late")) if connect == _FINE else "-"
    closed = session.is_closed
    await session.close()
    said = f"{by.value} {code}" if by is Party.SERVER else by.value
    ok = _right(phase, by, said, connect, reader, sender) and closed
    return CloseRow(variant.name, phase, code, by.value, connect, reader, sender, closed, ok)


_FINE, _NOTHING = "no error", "nothing"


def _right(phase: str, by: Party, said: str, connect: str, reader: str, sender: str) -> bool:
    if phase == SETUP:
        return connect.endswith(said)
    if by is Party.US:
        return reader == _NOTHING and sender.endswith(said)
    return reader.endswith(said) and sender.endswith(said)


async def _ended(session: LiveSession, wish: str) -> None:
    """Ask the peer for the end, and wait until the socket has it."""
    socket = session._service._socket  # noqa: SLF001 - nobody is told of the end in some variants, but it has come
    assert socket is not None
    await session.send_text(wish)
    while not socket.messages.finished and socket.messages.error is None:
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
