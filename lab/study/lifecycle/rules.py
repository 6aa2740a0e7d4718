"""How the four servers differ, as a session sees it: path and version, handles, and a call of a former connection.

Each session asks for a booking, is closed while the call waits, resumed by its handle, and answers the call then.

Prediction: the developer endpoint gives a handle once, the agent platform also says that there is none while a call
waits; a newer model takes the late result and speaks, an older one ignores it (``endpoints`` has the sources).
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from lab.core.errors import InvalidRun
from lab.live.client.opening import BOOK_SLOT
from lab.live.lifecycle import LiveSession
from lab.live.lifecycle.endings import SetupRefused
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol import paths
from lab.live.protocol.messages import FunctionCall, FunctionResponse, ServerMessage
from lab.live.session.commands import Audit
from lab.live.session.profile import Handles, OldCall
from lab.study.lifecycle import servers
from lab.study.lifecycle.servers import Server

ASKS = "Book me the 3pm slot tomorrow, please."

STEP_S = 10.0
"""For each thing that a server is to do; the slowest, a reply, takes it 2 s."""

SETTLE_S = 0.2
"""Between two attempts to resume: a session without a connection can be resumed a second after it."""

BEHIND_S = 0.2
"""In which a word that belongs to a call is there: it is sent with it."""

LOOK_S = 0.02

ACCEPTED, IGNORED, NEITHER = "accepted", "ignored", "neither"


@dataclass(frozen=True, slots=True)
class RulesRow:
    """One server."""

    profile: str
    path: str
    version: str | None
    """Of the API, as the server saw it asked for in that path."""

    handles: int
    """Names that it could be resumed by, before it was closed."""

    without: int
    """Words that it could not be resumed for now."""

    old_call: str
    """What became of a result for a call of the former connection: accepted, when the model spoke of it; ignored, when
    the server said that it dropped it; neither, also where the connection ended at it."""

    ok: bool
    """As its profile and its path have it."""


async def rows(endpoints: Iterable[Endpoint] = ENDPOINTS.values()) -> list[RulesRow]:
    """The table; all servers at once, with the lab's session.

    Raises:
        InvalidRun: a server did not call the tool, or did not let the session be resumed.
    """
    async with servers.running(endpoints) as up:
        return await asyncio.gather(*(_row(server) for server in up))


def as_json(found: Iterable[RulesRow]) -> list[dict[str, Any]]:
    """Rows as the contract has them."""
    return [asdict(row) for row in found]


def as_predicted(endpoint: Endpoint, *, without: int, old_call: str) -> bool:
    """Whether a server kept to its profile.

    Args:
        endpoint: It.
        without: As in the row.
        old_call: The same.
    """
    wanted = IGNORED if endpoint.server.old_call is OldCall.IGNORE else ACCEPTED
    return (without > 0) is (endpoint.server.handles is Handles.MANY) and old_call == wanted


async def _row(server: Server) -> RulesRow:
    endpoint = server.endpoint
    setup = replace(endpoint.setup(), tools=({"functionDeclarations": [dict(BOOK_SLOT)]},))
    session = LiveSession(lambda: WebSocketWire(server.url), setup)
    await session.connect()
    await session.send_text(ASKS)
    came = await _until_the_call(session)
    (call,) = _calls(came[-1])
    came += await _behind(session)
    named = [message.session_resumption_update for message in came if message.session_resumption_update is not None]
    await session.close()
    await _resume(session)
    await session.send_tool_responses([FunctionResponse(call.id, call.name, {"result": "booked"})])
    old_call = await _became(session, server)
    await session.close()
    handles, without = (sum(update.resumable is wanted for update in named) for wanted in (True, False))
    return RulesRow(
        endpoint.name,
        endpoint.path,
        server.book.lives[0].version,
        handles,
        without,
        old_call,
        ok=server.book.lives[0].version == _version(endpoint)
        and handles == 1
        and as_predicted(endpoint, without=without, old_call=old_call),
    )


def _version(endpoint: Endpoint) -> str | None:
    found = paths.find(endpoint.path)
    return None if found is None else found.version


def _calls(message: ServerMessage) -> tuple[FunctionCall, ...]:
    return () if message.tool_call is None else message.tool_call.function_calls


async def _until_the_call(session: LiveSession) -> list[ServerMessage]:
    came: list[ServerMessage] = []
    try:
        async with asyncio.timeout(STEP_S):
            while not came or not _calls(came[-1]):
                came.append(await anext(session.responses))
    except TimeoutError:
        raise InvalidRun(f"The model did not call its tool within {STEP_S:g} s.") from None
    return came


async def _behind(session: LiveSession) -> list[ServerMessage]:
    """What the server says right behind a call."""
    came: list[ServerMessage] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BEHIND_S):
            while True:
                came.append(await anext(session.responses))
    return came


async def _resume(session: LiveSession) -> None:
    deadline = time.monotonic() + STEP_S
    while session.is_closed:
        try:
            await session.resume()
        except SetupRefused as error:
            if time.monotonic() > deadline:
                raise InvalidRun(f"The session could not be resumed within {STEP_S:g} s: {error.message}") from error
            await asyncio.sleep(SETTLE_S)


async def _became(session: LiveSession, server: Server) -> str:
    """What became of the result: the server's own word that it dropped it, or the model's speech."""
    speech = asyncio.ensure_future(_speech(session))
    deadline = time.monotonic() + STEP_S
    try:
        while time.monotonic() < deadline:
            if any(event == Audit.OLD_RESULT for event, _ in server.book.notes):
                return IGNORED
            if speech.done():
                return ACCEPTED if speech.exception() is None and speech.result() else NEITHER
            await asyncio.sleep(LOOK_S)
        return NEITHER
    finally:
        speech.cancel()
        await asyncio.gather(speech, return_exceptions=True)


async def _speech(session: LiveSession) -> bool:
    """Whether the model speaks before the responses end."""
    async for message in session.responses:
        if message.server_content is not None and message.server_content.model_turn is not None:
            return True
    return False
