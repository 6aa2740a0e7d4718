"""A watchdog for one connection: pings of its own, and an end where nothing answers them.

The rules are ``lab.live.recovery.liveness``'s, the same as the reference client's. It watches from when the connection
is open; what it does about a loss is its owner's.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from websockets.exceptions import ConnectionClosed

from lab.live.client.tap import TappedConnection
from lab.live.recovery.liveness import By, Loss, Patience, Watchdog


class Watch:
    """The watchdog, and the task that asks it.

    Args:
        patience: Its numbers.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._dog: Watchdog | None = None
        self._asking: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None

    def begin(self, connection: TappedConnection, lost: Callable[[str], None]) -> None:
        """Watch a connection that has just been opened.

        Args:
            connection: Tells what it hears by ``heard`` and ``pong``.
            lost: Told once, in words; the watch is over then.
        """
        self._dog = Watchdog(self._patience, now=time.monotonic())
        self._asking = asyncio.get_running_loop().create_task(self._ask(self._dog, connection, lost))

    def stop(self) -> None:
        """Watch no more: the connection is over."""
        if self._asking is not None:
            self._asking.cancel()

    def heard(self, at: float) -> None:
        """Octets came."""
        if self._dog is not None:
            self._dog.frame(now=at)

    def pong(self, sent_at: float, at: float) -> None:
        """The answer to a ping came."""
        if self._dog is not None:
            self._dog.pong(sent_at, now=at)

    async def _ask(self, dog: Watchdog, connection: TappedConnection, lost: Callable[[str], None]) -> None:
        while True:
            now = time.monotonic()
            dog.unacknowledged(connection.unacknowledged(now))
            if dog.ping_due(now=now):
                if self._pinging is None or self._pinging.done():  # else the one before waits for the kernel
                    self._pinging = asyncio.get_running_loop().create_task(_ping(connection, now))
                dog.pinged(now=now)
            if seen := dog.lost(now=now):
                lost(_in_words(seen))
                return
            await asyncio.sleep(max(dog.next_at() - now, 0.0))


async def _ping(connection: TappedConnection, asked_at: float) -> None:
    with contextlib.suppress(ConnectionClosed):
        await connection.ping_behind(asked_at)


def _in_words(loss: Loss) -> str:
    shown = ", and what was sent is not acknowledged" if loss.by is By.UNACKNOWLEDGED else ", not even a pong"
    return f"nothing came for {loss.silent_s:.1f} s{shown}"
