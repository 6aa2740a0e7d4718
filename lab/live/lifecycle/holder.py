"""A program that holds a session and does what it is told: ``python -m lab.live.lifecycle.holder JSON``.

``{"url": ADDRESS, "watch": true}``; with ``watch`` its connections have a watchdog. It connects and reads; each line on
standard input is what it does next: ``send``, ``close`` or ``resume``. It says when that was done, or how it failed,
and what its reader is told: an error, or an end, to which responses that somebody holds never come.
"""

import asyncio
import json
import sys
from collections.abc import Sequence

from lab.live.lifecycle.endings import SessionError
from lab.live.lifecycle.session import LiveSession
from lab.live.lifecycle.websocket import WebSocketWire
from lab.live.protocol.messages import SessionResumption, Setup
from lab.live.recovery.liveness import Patience
from lab.programs.report import say

DONE = {"send": "sent", "close": "closed", "resume": "resumed"}
"""What it can be told, and what it says when that is done."""


def main(argv: Sequence[str] | None = None) -> int:
    """Connect, and do as the lines say until the input ends."""
    wanted = json.loads((sys.argv[1:] if argv is None else argv)[0])
    asyncio.run(_run(wanted["url"], Patience() if wanted.get("watch") else None))
    return 0


async def _run(url: str, watch: Patience | None) -> None:
    setup = Setup("models/m", session_resumption=SessionResumption())
    session = LiveSession(lambda: WebSocketWire(url, watch=watch), setup)
    await session.connect()
    say("connected")
    reading = asyncio.ensure_future(_read(session))
    while line := await asyncio.to_thread(sys.stdin.readline):
        await _do(session, line.strip())
        if reading.done():
            reading = asyncio.ensure_future(_read(session))
    reading.cancel()


async def _do(session: LiveSession, what: str) -> None:
    work = {"send": lambda: session.send_text("hello"), "close": session.close, "resume": session.resume}[what]
    say("asked", what=what)
    try:
        await work()
    except (SessionError, OSError) as error:
        say("failed", what=what, kind=type(error).__name__, error=str(error))
    else:
        say(DONE[what])


async def _read(session: LiveSession) -> None:
    try:
        async for _ in session.responses:
            pass
    except SessionError as error:
        say("told", kind=type(error).__name__, error=error.message)
    else:
        say("finished")


if __name__ == "__main__":
    sys.exit(main())
