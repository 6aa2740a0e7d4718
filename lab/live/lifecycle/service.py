"""What works for a session: connects, queues sends, reads answers.

Three tasks hold it while it is connected: one receives frames, one reads them, one writes. None of them, and nothing
here, holds the session, so that the session can be released while they wait. That is when a repaired variant closes:
at ``release``, which may come in any thread, with or without an event loop that runs. Nothing of it may wait for a turn
of the loop, which may be the last: the wire says goodbye at once, and only what is left is for the loop.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, cast

from lab.core.errors import LabError
from lab.live.lifecycle import attempts, endings
from lab.live.lifecycle.endings import Closure, Party, SessionError, SetupRefused, WireEnded
from lab.live.lifecycle.outgoing import Outgoing
from lab.live.lifecycle.socket import LiveSocket
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.variant import Variant
from lab.live.lifecycle.wire import MakeWire, Wire
from lab.live.protocol import closing, wire
from lab.live.protocol.messages import ClientMessage, ServerMessage, Setup

_closing: set["asyncio.Task[None]"] = set()
"""Closes under way whose session is gone: the event loop alone would not keep them."""


class Service:
    """The works of a session.

    Args:
        make: Makes a wire for each connection.
        variant: Whose rules.
    """

    def __init__(self, make: MakeWire, variant: Variant) -> None:
        self.responses: Stream[ServerMessage] = Stream()
        self.handle: str | None = None
        """The session's latest name; None before the server gave one."""
        self._make = make
        self._variant = variant
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wire: Wire | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._socket: LiveSocket | None = None
        self._outgoing = Outgoing()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._shutting: asyncio.Task[None] | None = None
        self._reason: Callable[[], SessionError] = endings.never
        """Makes what is said of there being no connection."""

        self._closed_at: float | None = None
        """When the server last answered a close of ours, by the loop's clock."""

        self._released = False
        # A reader that waits is told when all of this is gone, whichever variant's way it went.
        weakref.finalize(self, self.responses.finish)

    @property
    def connected(self) -> bool:
        """Whether there is a connection that is set up, as far as the variant knows."""
        return self._socket is not None

    async def connect(self, setup: Setup) -> None:
        """Connect and be set up.

        Args:
            setup: The first message.

        Raises:
            SessionError: the server refused, the connection was lost, or it was closed or released meanwhile.
            OSError: there is nobody.
        """
        if self._released:
            raise self._why_not()
        if self._socket is not None or self._attempt is not None:
            raise SessionError("The session is connected already.", fix="close() or resume() it.")
        self._loop = asyncio.get_running_loop()
        attempt = self._attempt = self._start(self._try(setup))
        attempt.add_done_callback(self._attempted)
        try:
            await asyncio.wait({attempt})
        except asyncio.CancelledError:
            if self._attempt is None or self._attempt is attempt:  # else another has taken its place
                await self.close()  # also where it has just succeeded
            raise
        try:
            if attempt.cancelled():
                raise self._why_not()
            attempt.result()
        finally:
            del attempt  # its exception holds this frame, and this frame the service

    def send(self, message: ClientMessage) -> Awaitable[None]:
        """Queue a message; done when it is on its way to the kernel, or as the variant has it, at once.

        Args:
            message: Is encoded here, and not looked at later.
        """
        answer = asyncio.get_running_loop().create_future()
        data = wire.encode(message)
        if not self._variant.answers_sends:
            self._outgoing.put(data, None)
            answer.set_result(None)
        elif self._socket is None:
            answer.set_exception(self._why_not())
        else:
            self._outgoing.put(data, answer)
        return cast("Awaitable[None]", answer)

    async def close(self) -> None:
        """End the connection, or the attempt at one; what was not read is dropped. Idempotent."""
        if self._attempt is not None:
            self._reason = partial(endings.told, self._ours())
            self._attempt.cancel()
            await asyncio.wait({self._attempt})
        if self._socket is not None:
            self._shutting = self._start(self._shut(self._socket))
            self._socket, self._reason = None, partial(endings.told, self._ours())
            self.responses.clear()
        if self._shutting is not None:
            await asyncio.shield(self._shutting)

    def release(self) -> None:
        """Close because nobody holds the session any more; in any thread, whatever the event loop does."""
        self._released = True
        if self._wire is not None:
            self._wire.leave(self._variant.close_code, "")
        self.responses.finish()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._tidy)

    async def _try(self, setup: Setup) -> None:
        """Connect; to a session that was closed a moment ago as often as its server says no for that."""
        while not await self._opened(setup):
            await asyncio.sleep(attempts.AGAIN_S)

    async def _opened(self, setup: Setup) -> bool:
        try:
            await self._open(setup)
        except SetupRefused as error:
            closed_s = None if self._closed_at is None else self._time() - self._closed_at
            if not attempts.settles(setup, error, closed_s):
                raise
            return False
        return True

    async def _open(self, setup: Setup) -> None:
        made = self._wire = self._make()
        try:
            await made.open()
        except WireEnded as end:
            raise attempts.refusal(setup, end.closure, self._variant) from None
        except BaseException:
            made.leave(self._variant.close_code, "")
            raise
        socket = LiveSocket(made, self._variant)
        receiving = self._start(self._receive(socket))
        try:
            first = await attempts.set_up(socket, setup, self._variant)
        except BaseException:
            made.leave(self._variant.close_code, "")
            receiving.cancel()
            raise
        self.responses.reopen()
        for message in first:
            self._take(message)
        self._socket, self._outgoing = socket, Outgoing()
        reading, writing = self._start(self._read(socket)), self._start(self._outgoing.write(socket.send))
        self._tasks = (receiving, reading, writing)

    async def _receive(self, socket: LiveSocket) -> None:
        try:
            await socket.receive()
        except asyncio.CancelledError:
            # The attempt came to nothing; or the event loop ends, and with it all that could close later.
            if self._variant.closes_on_release:
                socket.leave(closing.GOING_AWAY.code, "")
                if self._socket is socket:
                    self._socket, self._reason = None, partial(endings.told, socket.recorded or self._ours())
            raise

    async def _read(self, socket: LiveSocket) -> None:
        """Hand on what comes. A normal end is our own close, after which the stream stays open for a resume."""
        try:
            async for data in socket.messages:
                if self._socket is not socket:
                    return  # closed: what came before and was not read is dropped
                self._take(wire.parse_server(data))
        except SessionError as error:
            closure = endings.closure_of(error)
            self._break(socket, lambda: socket.error(closure))
        except wire.ProtocolError as error:
            what = f"What the server sent is not the protocol: {error}"
            self._break(socket, lambda: SessionError(what))

    def _take(self, message: ServerMessage) -> None:
        update = message.session_resumption_update
        if update is not None and update.resumable and update.new_handle:
            self.handle = update.new_handle
        self.responses.put(message)

    def _break(self, socket: LiveSocket, error: Callable[[], SessionError]) -> None:
        """Tell who reads and who sends, and end what is left of the connection."""
        self.responses.fail(error)
        if self._socket is socket:
            self._socket, self._reason = None, error
            self._shutting = self._start(self._shut(socket))

    async def _shut(self, socket: LiveSocket) -> None:
        tasks, self._tasks = self._tasks, ()
        self._outgoing.refuse(self._why_not)
        await socket.close()
        receiving, reading, writing = tasks
        writing.cancel()
        await asyncio.wait({receiving, reading, writing})
        if socket.answered and socket.recorded is not None and socket.recorded.by is Party.US:
            self._closed_at = self._time()

    def _why_not(self) -> SessionError:
        return endings.released(self._ours()) if self._released else self._reason()

    def _ours(self) -> Closure:
        return Closure(Party.US, self._variant.close_code)

    def _tidy(self) -> None:
        """End what is left after a release."""
        task = self._start(self.close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    def _attempted(self, attempt: "asyncio.Task[None]") -> None:
        """Connect tells whoever called it; who reads and who sends are told here."""
        self._attempt = None
        error = None if attempt.cancelled() else attempt.exception()
        if isinstance(error, (LabError, OSError)) and self._variant.names_setup_errors and not self._released:
            self._reason = endings.again(error)
            self.responses.reopen()
            self.responses.fail(self._reason)

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)
