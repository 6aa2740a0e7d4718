"""Messages that wait to be written."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lab.live.lifecycle.endings import SessionError

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # as libraries do: whoever wants the lines asks for them

Answer = asyncio.Future[None]


class Outgoing:
    """A queue; one task writes. Whoever asked for an answer gets one: written, or why not."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[bytes, Answer | None]] = asyncio.Queue()
        self._writing: Answer | None = None

    def put(self, data: bytes, answer: Answer | None) -> None:
        """Queue a message.

        Args:
            data: As ``write`` hands it on.
            answer: Is told what became of it; None where nobody asks.
        """
        self._queue.put_nowait((data, answer))

    async def write(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Write until cancelled.

        Args:
            send: Writes one message, and raises SessionError where it cannot.
        """
        while True:
            data, self._writing = await self._queue.get()
            try:
                await send(data)
            except SessionError as error:
                _tell(self._writing, error)
            else:
                if self._writing is not None and not self._writing.done():
                    self._writing.set_result(None)
            self._writing = None

    def refuse(self, error: Callable[[], SessionError]) -> None:
        """Tell everybody who waits that nothing more is written.

        Args:
            error: Makes what each is told.
        """
        if self._writing is not None:
            _tell(self._writing, error())
        while not self._queue.empty():
            _tell(self._queue.get_nowait()[1], error())


def _tell(answer: Answer | None, error: SessionError) -> None:
    if answer is None:
        log.warning("A message was not sent: %s", error)
    elif not answer.done():
        answer.set_exception(error)
