"""What the programs have in common: how one begins, what it says, its one transport, and what goes on beside it."""

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from lab.core.errors import UsageError
from lab.host.machine.commands import Audit, Note
from lab.host.protocol.messages import Verdict
from lab.host.shell import transport, websocket
from lab.host.shell.tasks import Tasks
from lab.host.shell.transport import Transport
from lab.host.shell.websocket import NotWebSocket
from lab.programs import report

UNREAD = 141
"""Exit code where whoever read the standard output is gone; as ``lab`` has it: 128 + SIGPIPE."""


class Program(ABC):
    """One end of one call.

    Args:
        given: The command line.
        transport: To the other end.
    """

    def __init__(self, given: argparse.Namespace, transport: Transport) -> None:  # noqa: ARG002 -- each has its own use
        self._given = given
        self._beside = Tasks()
        """What leads it and what it tells; a defect there is told on standard error."""

    @abstractmethod
    async def run(self) -> int:
        """Go on until it is over; the exit code."""


async def run(
    made: Callable[[argparse.Namespace, Transport], Program],
    given: argparse.Namespace,
    reached: AbstractAsyncContextManager[Transport],
) -> int:
    """One call; the exit code.

    Args:
        made: Makes the program.
        given: The command line.
        reached: The other end.
    """
    async with reached as found:
        say("connected")
        try:
            return await made(given, found).run()
        finally:
            found.abort()  # What an interrupt left open.


@contextlib.contextmanager
def beginning(given: argparse.Namespace) -> Iterator[None]:
    """In this a program connects, or begins to listen, and does nothing else.

    Raises:
        UsageError: it cannot, and why.
    """
    try:
        yield
    except OSError as error:
        begin = f"The {given.role} cannot begin:"
        match error:
            case socket.gaierror():
                why, fix = f"{given.host} is no host: {error.strerror}", "name one that resolves"
            case ConnectionRefusedError():
                why = f"nobody listens on {given.host}, port {given.port}"
                fix = "start the job first, or name the address and the port on which it listens"
            case NotWebSocket():
                why, fix = str(error), "have --websocket at both sides, or at neither"
            case _:
                why, fix = error.strerror or str(error), "name another address or port"
        raise UsageError(f"{begin} {why.rstrip('.')}.", fix=fix) from error


@contextlib.asynccontextmanager
async def one_that_comes(given: argparse.Namespace) -> AsyncIterator[Transport]:
    """Listen until one is there; whoever else comes is refused, and so is who has another carrier.

    Raises:
        UsageError: one cannot listen there.
    """
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
    async with contextlib.AsyncExitStack() as open_ones:
        with beginning(given):
            port = await open_ones.enter_async_context(listening)
        say("listening", port=port)
        yield await arrived


def say(event: str, **detail: Any) -> None:
    """See ``lab.programs.report``; if nobody reads it, the program ends, wherever in it that is found."""
    try:
        report.say(event, **detail)
    except BrokenPipeError:
        unread()


def unread() -> NoReturn:
    """End the program, and quietly: what is said on the way out goes nowhere.

    Raises:
        SystemExit: always; a machine, whose user's code may fail, does not take that for a failure.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    raise SystemExit(UNREAD)


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
