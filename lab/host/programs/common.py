"""What a job and a simulator have in common: one transport of one that comes, notes, and a verdict in words."""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from lab.host.machine.commands import Audit, Note
from lab.host.protocol.messages import Verdict
from lab.host.shell import transport, websocket
from lab.host.shell.transport import Transport
from lab.programs.report import say


@contextlib.asynccontextmanager
async def one_that_comes(given: argparse.Namespace) -> AsyncIterator[Transport]:
    """Listen until one is there; whoever else comes is refused, and so is who has another carrier."""
    arrived: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()

    def first(made: Transport) -> None:
        if arrived.done():
            _refused("there is one already")
            made.abort()
        else:
            arrived.set_result(made)

    listening = (
        websocket.listening(given.host, given.port, first, refused=_refused)
        if given.websocket
        else transport.listening(given.host, given.port, first)
    )
    async with listening as port:
        say("listening", port=port)
        yield await arrived


def note(written: Note) -> None:
    """Say what a machine wants written down."""
    if written.event is Audit.STATE:
        say("state", **written.fields)
    else:
        say("note", kind=written.event.value, **written.fields)


def words(verdict: Verdict | None) -> dict[str, Any] | None:
    """A verdict as it is said."""
    return None if verdict is None else {"success": verdict.success, "reason": verdict.reason}


def _refused(why: str) -> None:
    say("refused", why=why)
