"""What a host sends, or says in its place; how much of it waits to be taken, and whether an answer was."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from lab.host.machine.commands import Audit, Note, Notes
from lab.host.protocol.errors import FrameTooLong, Unsayable
from lab.host.protocol.framing import MOST
from lab.host.protocol.messages import Message, Response
from lab.host.shell.instead import instead
from lab.host.shell.transport import Transport, TransportClosed, Undeliverable

MOST_OWED = MOST
"""Octets of answers that may wait for their remote to take them, beside the last answer and what its session was asked
already; then nothing more is read. Events do not count: the request for the verdict is heard behind any of them."""


class Outbox:
    """All that one host puts on its transport, and its end.

    Args:
        transport: Its own.
        note: Takes what is to be written down.
    """

    def __init__(self, transport: Transport, note: Notes) -> None:
        self._transport = transport
        self._note = note
        self._owed = 0
        """Octets of answers that the transport's queue may have."""
        self._delivering: dict[str, asyncio.Future[bool]] = {}
        self.over = asyncio.Event()
        """Whether the transport has ended."""

    def send(self, message: Message, reading: "asyncio.Task[Any]") -> bool:
        """Queue a message, or what can be said in its place; gives whether it was taken as it is.

        Args:
            message: Which.
            reading: The task that reads; all that is sent in it is owed, as answers are.

        Raises:
            TransportClosed: the transport is gone.
        """
        before = self._transport.queued
        try:
            whole = self._put(message)
        except TransportClosed:
            raise
        except (FrameTooLong, Unsayable, Undeliverable) as error:
            self._note(Note(Audit.UNSENT, {"what": type(message).__name__, "error": str(error)}))
            return False
        if isinstance(message, Response) or asyncio.current_task() is reading:
            self._owed += max(0, self._transport.queued - before)
        return whole

    async def room(self) -> None:
        """Wait, where more is owed than may be, until all of it is the kernel's.

        Raises:
            TransportClosed: it is not going to be.
        """
        self._owed = min(self._owed, self._transport.queued)
        if self._owed > MOST_OWED:
            await self._transport.flush()

    @contextlib.contextmanager
    def delivering(self, request: str) -> "Iterator[asyncio.Future[bool]]":
        """What becomes known meanwhile of a request's answer: whether the transport took it."""
        told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._delivering[request] = told
        try:
            yield told
        finally:
            del self._delivering[request]

    def delivered(self, request: str, *, delivered: bool) -> None:
        """Tell who waits in ``delivering``, if anybody does."""
        told = self._delivering.get(request)
        if told is not None and not told.done():
            told.set_result(delivered)

    async def close(self, by: float) -> None:
        """End the transport behind what is queued, at an instant at the latest, seconds of the loop's clock."""
        try:
            async with asyncio.timeout_at(by):
                await self._transport.close()
        except TimeoutError:
            self._transport.abort()
        finally:
            self.over.set()

    def abort(self) -> None:
        """End the transport now."""
        self._transport.abort()
        self.over.set()

    def _put(self, message: Message) -> bool:
        """Queue it, or what can be said in its place; whether it is the message itself.

        Raises:
            FrameTooLong, Unsayable: neither can be.
            Undeliverable: it is not taken.
        """
        try:
            self._transport.put(message)
        except (FrameTooLong, Unsayable) as error:
            for shorter in instead(message, error):
                with contextlib.suppress(FrameTooLong):
                    self._transport.put(shorter)
                    return False
            raise
        return True
