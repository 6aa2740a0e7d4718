"""What has come on a connection and is not consumed yet."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from lab.live.protocol.messages import ServerMessage


class Inbox:
    """Takes without limit, so that a reader never waits for its consumer."""

    def __init__(self) -> None:
        self._waiting: deque[ServerMessage] = deque()
        self._changed = asyncio.Event()
        self._ended = False

    def put(self, message: ServerMessage) -> None:
        """Keep a message."""
        self._waiting.append(message)
        self._changed.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[ServerMessage]:
        """What has come and comes, in order, until the end."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()
