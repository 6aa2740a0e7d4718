"""Transports that are real ones in all but what a case changes."""

import asyncio
from collections.abc import Callable

from lab.host.protocol.messages import Finalized, Message, Response
from lab.host.shell.transport import Transport, Undeliverable


class Through:
    """A transport that is another one in all but what a case changes.

    Args:
        inner: The other one.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.claim = inner.claim
        self.close = inner.close
        self.abort = inner.abort

    def put(self, message: Message) -> None:
        """See ``Transport``."""
        self._inner.put(message)

    @property
    def queued(self) -> int:
        """See ``Transport``."""
        return self._inner.queued

    async def flush(self) -> None:
        """See ``Transport``."""
        await self._inner.flush()

    async def receive(self) -> Message:
        """See ``Transport``."""
        return await self._inner.receive()


class Refusing(Through):
    """Stands and takes no verdict, as a room's byte stream to somebody who cannot be reached."""

    def put(self, message: Message) -> None:
        """See ``Transport``."""
        if isinstance(message, Response) and isinstance(message.answer, Finalized):
            raise Undeliverable("nobody takes it")
        super().put(message)


class Holding(Through):
    """Writes what is put, and says so only when it is let: its host drains until then."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.let = asyncio.Event()

    async def flush(self) -> None:
        """See ``Transport``."""
        await self.let.wait()
        await super().flush()


class Deaf(Through):
    """Reads nothing: what is sent to it fills its kernel's buffers, then those of the sender's, then its program's."""

    async def receive(self) -> Message:
        """See ``Transport``."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing ends that wait")


Wrap = Callable[[Transport], Transport]
"""What a case makes of a transport."""


def as_it_is(transport: Transport) -> Transport:
    """What a case makes of one that it leaves alone."""
    return transport
