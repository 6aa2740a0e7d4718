"""What both links have in common: a tapped connection, once it is made, and what waits on either side of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from lab.live.client.inbox import Inbox
from lab.live.client.link import Ears, Ending, Failed, Phase
from lab.live.client.outbox import Outbox
from lab.live.client.tap import TappedConnection
from lab.live.protocol.messages import ClientMessage, ServerMessage


class TappedLink:
    """A ``Link`` but for ``connect``, which makes the connection, and whoever reads it.

    Args:
        ears: Who is told what it notices.
    """

    def __init__(self, ears: Ears) -> None:
        self._ears = ears
        self._made: TappedConnection | None = None
        self._connecting: asyncio.Task[Any] | None = None
        self._unwanted = False
        self._inbox = Inbox()
        self._outbox = Outbox()
        self._tasks: list[asyncio.Task[None]] = []
        self._phase = Phase.CONNECT
        self._ending: Ending | None = None

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        return self._phase

    @property
    def ending(self) -> Ending | None:
        """How it ended."""
        return self._ending

    def send(self, message: ClientMessage, written: Callable[[], None] | None = None) -> None:
        """Queue a message."""
        if self._ending is None:
            self._outbox.message(message, written)

    def ping(self) -> None:
        """Send a ping in the background."""
        if self._ending is None:
            self._outbox.ping()

    def unacknowledged(self, now: float) -> float | None:
        """Since when octets are unacknowledged by the peer's kernel."""
        return None if self._made is None else self._made.unacknowledged(now)

    def abort(self) -> None:
        """End the TCP connection, or the attempt at one, now."""
        if self._made is not None and self._made.stands:
            self._made.abort()
        elif self._connecting is not None:
            self._connecting.cancel()
        self._unwanted = True

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Queue a close frame, wait in the background."""
        if self._made is not None and self._made.stands:
            self._made.close_behind(code, reason)

    def __aiter__(self) -> AsyncIterator[ServerMessage]:
        """What comes."""
        return aiter(self._inbox)

    def _begin(self) -> None:
        """The present task makes the connection; ``abort`` cancels it where there is none yet.

        Raises:
            Failed: it was aborted before.
        """
        if self._unwanted:
            raise Failed("aborted before it began", self._phase)
        self._connecting = asyncio.current_task()

    def _come_to_nothing(self) -> None:
        """The attempt is over: nothing is left open."""
        self._connecting = None
        self.abort()
