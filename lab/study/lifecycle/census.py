"""The servers' counts over time: when each connection was first counted, and when no longer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from lab.study.lifecycle.servers import Count, Server

LOOK_S = 0.05
"""Between two looks: how late an end is seen at most, on a machine that keeps up."""


class Census:
    """What the servers counted so far; another thread may read it.

    Args:
        up: Servers that run.
    """

    def __init__(self, up: Sequence[Server]) -> None:
        self._up = up
        self._seen: set[tuple[int, int]] = set()
        self._gone: dict[tuple[int, int], Count] = {}
        self._ahead_s: dict[int, float] = {}

    def counted(self, server: Server, port: int) -> bool:
        """Whether the server ever counted a connection from that port."""
        return (server.port, port) in self._seen

    def gone(self, server: Server, port: int) -> Count | None:
        """The first count without it after one with it; None while there is none."""
        return self._gone.get((server.port, port))

    def session_s(self, server: Server, at: float) -> float:
        """The server's session time at an instant before any lapse."""
        return at + self._ahead_s[server.port]

    async def look(self) -> None:
        """Ask every server once."""
        for server, count in zip(
            self._up, await asyncio.gather(*(asyncio.to_thread(server.count) for server in self._up)), strict=True
        ):
            self._ahead_s.setdefault(server.port, count.session_s - count.at)
            here = {(server.port, port) for port in count.ports}
            self._seen |= here
            for one in self._seen - here:
                if one[0] == server.port:
                    self._gone.setdefault(one, count)

    async def go_on(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)


@contextlib.asynccontextmanager
async def census(up: Sequence[Server]) -> AsyncIterator[Census]:
    """A census that goes on until the block ends."""
    taken = Census(up)
    going = asyncio.get_running_loop().create_task(taken.go_on())
    try:
        yield taken
    finally:
        going.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await going
