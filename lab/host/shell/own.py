"""The host that a session has to itself, because it is in another room than its job."""

import asyncio
from collections.abc import Awaitable, Callable

from lab.host.machine.reasons import Ending
from lab.host.shell.host import SessionHost
from lab.host.shell.session import Session
from lab.host.shell.tasks import Tasks, heard
from lab.host.shell.transport import Transport

Elsewhere = Callable[[str], Awaitable[Transport]]
"""Makes a transport to a room; the user's."""


class OwnHost:
    """One session's host, from before it is made.

    Args:
        session: Whose it is.
        elsewhere: Makes its transport.
        make: Makes it, of that.
        failed: Told of what goes wrong with either.
        tasks: Where the user's code runs.
    """

    def __init__(
        self,
        session: Session,
        elsewhere: Elsewhere,
        make: Callable[[Transport], SessionHost],
        *,
        failed: Callable[[str, Exception], None],
        tasks: Tasks,
    ) -> None:
        self._session = session
        self._elsewhere = elsewhere
        self._make = make
        self._failed = failed
        self._ending: Ending | None = None
        self._given_up = False
        self._making = tasks.start(self._begin(), heard=True)

    async def made(self) -> SessionHost:
        """Wait for it.

        Raises:
            OSError: it has no transport.
        """
        host, raised = await heard(lambda: asyncio.shield(self._making))
        if isinstance(raised, asyncio.CancelledError):
            # Its making was, and not who waits here.
            raise self._too_late() from raised
        if raised is not None:
            raise raised
        assert host is not None
        return host

    def closed(self, ending: Ending) -> None:
        """The session is over: if nobody else has told it that, the host hears it here, as soon as it is made."""
        self._ending = ending
        if (host := self._made) is not None:
            host.closed(self._session, ending)

    async def close(self, drain_s: float) -> None:
        """Drain and close it.

        Args:
            drain_s: How long its making may still take, where it is not over.
        """
        await asyncio.wait([self._making], timeout=drain_s)
        self._given_up = True
        self._making.cancel()
        if (host := self._made) is not None:
            await host.close()

    @property
    def _made(self) -> SessionHost | None:
        """None where it is being made yet, and where that failed."""
        making = self._making
        there = making.done() and not making.cancelled() and making.exception() is None
        return making.result() if there else None

    async def _begin(self) -> SessionHost:
        try:
            host = self._make(await self._way())
        except Exception as raised:
            self._failed(f"way to {self._session.room}", raised)
            raise
        # It may have ended, and tell that later.
        ending = self._ending or self._session.ending
        if ending is None:
            host.register_session(self._session)
        else:
            host.register_ended(self._session, ending)
        return host

    async def _way(self) -> Transport:
        room = self._session.room
        transport, raised = await heard(lambda: self._elsewhere(room))
        if isinstance(raised, asyncio.CancelledError):
            raise ConnectionError(f"The way to room {room} was not found: {str(raised) or 'cancelled'}.") from raised
        if raised is not None:
            raise raised
        assert transport is not None
        if self._given_up:
            transport.abort()
            raise self._too_late()
        return transport

    def _too_late(self) -> ConnectionError:
        return ConnectionError(f"The way to room {self._session.room} was not found in time.")
