"""A wire that is received from all the time, and whose end is recorded.

The close race: a close of our own records its end, cancels the wire, and then finishes the stream. The receive that
was pending fails at the cancel and comes to the same place with the wire's code. As published it records its own end
over the first, and whichever of the two finishes the stream first decides what the reader is told.
"""

from lab.live.lifecycle import endings
from lab.live.lifecycle.endings import ABNORMAL, Closure, Party, SessionError, WireEnded
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.variant import Variant
from lab.live.lifecycle.wire import Wire

USERS_CODE = 1001
"""What the published client takes for its user's close, whoever sent it."""


class LiveSocket:
    """One connection.

    Args:
        wire: Open.
        variant: Whose rules.
    """

    def __init__(self, wire: Wire, variant: Variant) -> None:
        self.messages: Stream[str | bytes] = Stream()
        self.recorded: Closure | None = None
        """How it ended; None while it stands."""

        self.answered = False
        """Whether a close frame of the server's came."""

        self._wire = wire
        self._variant = variant

    async def receive(self) -> None:
        """Fill the stream until the wire ends."""
        while self.recorded is None:
            try:
                data = await self._wire.receive()
            except WireEnded as end:
                self.answered = end.closure.code != ABNORMAL
                await self._end(end.closure)
                return
            if isinstance(data, bytes) or self._variant.reads_text_frames:
                self.messages.put(data)

    async def send(self, data: bytes) -> None:
        """Write a message.

        Args:
            data: UTF-8.

        Raises:
            SessionError: it is over, told as recorded.
        """
        if self.recorded is not None:
            raise self.error(self.recorded)
        try:
            await self._wire.send(data)
        except WireEnded as end:
            raise self.error(self.recorded or end.closure) from None

    async def close(self, reason: str = "") -> None:
        """End it from here.

        Args:
            reason: For the close frame; the code is the variant's.
        """
        await self._end(Closure(Party.US, self._variant.close_code, reason))

    def leave(self, code: int, reason: str) -> None:
        """End it from here without waiting.

        Args:
            code: For the close frame, where there can be one.
            reason: The same.
        """
        self.recorded = self.recorded or Closure(Party.US, code, reason)
        self._wire.leave(code, reason)

    def error(self, closure: Closure) -> SessionError:
        """What is said of an end.

        Args:
            closure: The end.
        """
        if self._variant.tells_who_closed:
            return endings.told(closure)
        return endings.told(Closure(Party.US, closure.code)) if self._by_user(closure) else endings.unexpected(closure)

    async def _end(self, closure: Closure) -> None:
        if self._variant.first_end_counts and self.recorded is not None:
            return
        self.recorded = closure
        await self._wire.cancel(closure.code, closure.reason)
        if self._by_user(closure):
            self.messages.finish()
        else:
            self.messages.fail(lambda: self.error(closure))

    def _by_user(self, closure: Closure) -> bool:
        return closure.by is Party.US if self._variant.tells_who_closed else closure.code == USERS_CODE
