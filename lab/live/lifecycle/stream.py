"""What has come and is not read yet."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Stream(Generic[Item]):
    """An asynchronous iterator that takes without limit.

    It knows nothing of who fills it: whoever holds a stream holds no session. It is filled and read in one thread, and
    may be finished in any.
    """

    def __init__(self) -> None:
        self._waiting: deque[Item] = deque()
        self._readers: set[asyncio.Future[None]] = set()
        """Who waits."""

        self._error: Callable[[], Exception] | None = None
        self._failed = False
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether it gives nothing more, ever."""
        return self._finished

    @property
    def error(self) -> Exception | None:
        """What a reader is told at its end; None where it is not at an end, or at a normal one."""
        return None if self._error is None else self._error()

    def put(self, item: Item) -> None:
        """Keep something for the reader; nothing once it is at an end.

        Args:
            item: Is given as it is, behind what waits.
        """
        if not self._finished and not self._failed:
            self._waiting.append(item)
            self._wake()

    def fail(self, error: Callable[[], Exception]) -> None:
        """Raise an error behind what has come; the first end counts.

        Args:
            error: Makes it, anew for each read.
        """
        if not self._finished and not self._failed:
            self._error, self._failed = error, True
            self._wake()

    def finish(self) -> None:
        """Give nothing more, ever, behind what has come and an error that nobody was told."""
        self._finished = True
        self._wake()

    def reopen(self) -> None:
        """Forget an error: more may come."""
        self._error, self._failed = None, False

    def clear(self) -> None:
        """Drop what was not read."""
        self._waiting.clear()

    def __aiter__(self) -> "Stream[Item]":
        """What has come and comes, in order; a stream that is iterated again goes on where it was left."""
        return self

    async def __anext__(self) -> Item:
        """The next of it.

        Raises:
            Exception: the stream failed; again at each read, until it is opened again or finished.
        """
        while not self._has_news():
            await self._news()
        if self._waiting:
            return self._waiting.popleft()
        if self._error is not None:
            error = self._error()
            if self._finished:
                self._error = None  # told once; from now on it is a stream at its end
            raise error
        raise StopAsyncIteration

    def _has_news(self) -> bool:
        return bool(self._waiting) or self._error is not None or self._finished

    async def _news(self) -> None:
        reader = asyncio.get_running_loop().create_future()
        self._readers.add(reader)
        try:
            if not self._has_news():  # an end in another thread, which this reader came too late for
                await reader
        finally:
            self._readers.discard(reader)

    def _wake(self) -> None:
        for reader in tuple(self._readers):
            with contextlib.suppress(RuntimeError):  # its loop is closed
                reader.get_loop().call_soon_threadsafe(_go_on, reader)


def _go_on(reader: "asyncio.Future[None]") -> None:
    if not reader.done():
        reader.set_result(None)
