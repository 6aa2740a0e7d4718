"""A program that lets go of a session and goes on: ``python -m lab.live.lifecycle.releaser JSON``.

``{"variant": NAME, "url": ADDRESS}``. It connects, waits for a line on standard input, and drops its session; the
responses it keeps, reads them, and says whether they came to a normal end or to an error. It stays until its input
ends, as an application does that forgot a session and has other things to do.
"""

import asyncio
import json
import sys
from collections.abc import Sequence

from lab.live.lifecycle.endings import SessionError
from lab.live.lifecycle.session import LiveSession
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.variant import VARIANTS
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import ServerMessage, SessionResumption, Setup
from lab.programs.report import say


def main(argv: Sequence[str] | None = None) -> int:
    """Connect, release, and tell of the responses' end."""
    wanted = json.loads((sys.argv[1:] if argv is None else argv)[0])
    asyncio.run(_run(wanted["url"], wanted["variant"]))
    return 0


async def _run(url: str, variant: str) -> None:
    setup = Setup("models/m", session_resumption=SessionResumption())
    session = LiveSession(lambda: WebSocketWire(url), setup, VARIANTS[variant])
    await session.connect()
    say("connected")
    responses = session.responses
    await asyncio.to_thread(sys.stdin.readline)
    del session
    say("released")
    reading = asyncio.ensure_future(_read(responses))
    await asyncio.to_thread(sys.stdin.read)
    reading.cancel()


async def _read(responses: Stream[ServerMessage]) -> None:
    try:
        async for _ in responses:
            pass
    except SessionError as error:
        say("failed", error=error.message)
    else:
        say("finished")


if __name__ == "__main__":
    sys.exit(main())
