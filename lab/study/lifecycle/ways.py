"""The paths by which a session is left, one function each; ``elsewhere`` has those of other threads and processes.

Every one of them connects, waits until the server tells of the connection, and then leaves: what ended afterwards did
stand before.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from lab.core.errors import InvalidRun
from lab.live.lifecycle.endings import SetupRefused, UnexpectedClosure
from lab.study.lifecycle import elsewhere
from lab.study.lifecycle.stage import LOOK_S, SEEN_S, Left, Reading, Stage, left

RELEASED = "released, stream kept"
CLOSED = "closed"
CLOSED_RELEASED = "closed, then released"
RESUMED = "resumed after close, then released"
SENDING = "released, a send queued"
CONNECTING = "released during connect"
THREAD = "released in another thread"
STANDING = "released, event loop not running"
STOPPING = "released as its event loop stops"
EXIT = "interpreter exit"

TRIES = 3
"""At a moment that a machine under load may miss: the answer to a setup takes a quarter of a second."""

QUEUED = 10
"""Sends that wait at the release, of a tenth of a second of speech each."""


def _unread(answer: "asyncio.Future[None]") -> None:
    """Nobody waits for this one; kept, its exception would hold what raised it."""
    if not answer.cancelled():
        answer.exception()


async def released(stage: Stage) -> Left:
    """The last reference goes; its responses are kept."""
    return left(*await stage.opened())


async def closed(stage: Stage) -> Left:
    """Closed, and held."""
    session, life, reading = await stage.opened()
    found = left(session, life, reading)
    await session.close()
    found.said.append(session.is_closed)
    found.kept.append(session)
    return found


async def closed_and_released(stage: Stage) -> Left:
    """Closed, and the last reference goes."""
    session, life, reading = await stage.opened()
    found = left(session, life, reading)
    await session.close()
    found.said.append(session.is_closed)
    return found


async def resumed(stage: Stage) -> Left:
    """Closed, resumed once the server lets it, and released."""
    session, attempts = stage.session()
    await session.connect()
    before = [session.is_closed]
    reading = Reading(session.responses)
    await reading.begin()
    async with asyncio.timeout(SEEN_S):
        while session.handle is None:
            await asyncio.sleep(LOOK_S)
    await session.close()
    before.append(session.is_closed)
    deadline = time.monotonic() + SEEN_S
    while session.is_closed:
        try:
            await session.resume()
        except (SetupRefused, UnexpectedClosure):  # The server lets a session settle; each answer takes half a second.
            if time.monotonic() > deadline:
                raise
    return left(session, await stage.seen(attempts), reading, *before)


async def sending(stage: Stage) -> Left:
    """Released with sends that no kernel has taken."""
    session, life, reading = await stage.opened()
    for _ in range(QUEUED):
        asyncio.ensure_future(session.send_audio(bytes(3200))).add_done_callback(_unread)
    return left(session, life, reading)


async def connecting(stage: Stage) -> Left:
    """Released when the server has the setup, and has not answered it.

    Raises:
        InvalidRun: it was answered by then, again and again.
    """
    for _ in range(TRIES):
        session, attempts = stage.session()
        reading = Reading(session.responses)
        await reading.begin()
        attempt = asyncio.ensure_future(session.connect())
        attempt.add_done_callback(_unread)
        life = await stage.seen(attempts)
        async with asyncio.timeout(SEEN_S):
            while not life.asked:
                await asyncio.sleep(LOOK_S)
        found = left(session, life, reading)
        if session.is_closed and not attempt.done():
            return found
        await session.close()
        await reading.stop()
    raise InvalidRun(f"{stage.server.endpoint.name} had set the session up before it was released, {TRIES} times.")


async def in_a_thread(stage: Stage) -> Left:
    """The last reference goes in a thread that has no event loop."""
    session, life, reading = await stage.opened()
    found = left(session, life, reading)
    held = [session]
    del session
    await asyncio.to_thread(held.clear)
    return found


WAYS: Mapping[str, Callable[[Stage], Awaitable[Left]]] = MappingProxyType(
    {
        RELEASED: released,
        CLOSED: closed,
        CLOSED_RELEASED: closed_and_released,
        RESUMED: resumed,
        SENDING: sending,
        CONNECTING: connecting,
        THREAD: in_a_thread,
        STANDING: elsewhere.standing,
        STOPPING: elsewhere.stopping,
    }
)
"""Each path within this process."""

PATHS = (*WAYS, EXIT)

HELD = frozenset({CLOSED, STANDING, STOPPING})
"""Paths after which something rightly holds the service: the application, or the tasks of a loop that stands still."""

OPEN_STREAM = frozenset({CLOSED})
"""Paths after which the stream stays open, since somebody holds the session."""

FIN_ALONE = frozenset({THREAD})
"""Paths on which a client may end TCP without a close frame: no other thread may write in the midst of what its event
loop writes."""

SILENT = frozenset({STANDING, STOPPING})
"""Paths on which a leaked session's loop never answers the server's own close."""

SAID: Mapping[str, list[bool]] = MappingProxyType(
    {
        **{key: [False] for key in (RELEASED, SENDING, THREAD, STANDING, STOPPING)},
        CONNECTING: [True],
        CLOSED: [False, True],
        CLOSED_RELEASED: [False, True],
        RESUMED: [False, True, False],
        EXIT: [],
    }
)
"""What ``is_closed`` is to be after each step of a path, the last of them just before it is left."""
