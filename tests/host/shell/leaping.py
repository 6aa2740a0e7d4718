"""A loop whose time passes when nothing else happens or a test says so, and a transport that a test makes slow."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from lab.host.protocol.messages import Message
from lab.host.shell.transport import Claim, TransportClosed


class _Leaping(selectors.SelectSelector):
    """Waits for nothing: the clock is set to the next instant instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "all wait for what never comes"
            self.now += max(0.0, timeout)
        return found


class Loop(asyncio.SelectorEventLoop):
    """Its clock begins at 0; for scenarios without threads, and with no sockets but a pair of the kernel's own."""

    def __init__(self) -> None:
        self._clock = _Leaping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def stand_still(self, for_s: float) -> None:
        """Let time pass in which nothing runs."""
        self._clock.now += for_s


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Run it in no time; what the loop's exception handler was told of."""
    defects: list[dict[str, Any]] = []

    async def told() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: defects.append(context))
        await scenario()

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(told())
    return defects


class Slow(Claim):
    """A transport to nobody.

    Args:
        flush_s: How long it takes to write what is queued.
        close_s: How long the other side takes to end it.
    """

    def __init__(self, flush_s: float = 0.0, close_s: float = 0.0) -> None:
        super().__init__()
        self.flush_s = flush_s
        self.close_s = close_s
        self.taken: list[Message] = []
        self.queued = 0
        self._aborted = asyncio.Event()
        self._coming: asyncio.Queue[Message | Exception] = asyncio.Queue()

    @property
    def aborted(self) -> bool:
        """Whether it was ended without waiting."""
        return self._aborted.is_set()

    def come(self, message: Message | Exception) -> None:
        """Let something come from the other side."""
        self._coming.put_nowait(message)

    def put(self, message: Message) -> None:
        if self.aborted:
            raise TransportClosed("aborted here")
        self.taken.append(message)

    async def flush(self) -> None:
        if await self._aborted_within(self.flush_s):
            raise TransportClosed("aborted here")

    async def receive(self) -> Message:
        message = await self._coming.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def close(self) -> None:
        await self._aborted_within(self.close_s)

    def abort(self) -> None:
        self._aborted.set()
        self.come(TransportClosed("aborted here"))

    async def _aborted_within(self, time_s: float) -> bool:
        try:
            await asyncio.wait_for(self._aborted.wait(), time_s)
        except TimeoutError:
            return False
        return True
