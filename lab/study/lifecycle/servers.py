"""The session servers of the endpoints, in a thread of their own, and their own count of connections.

What a server says of its connections is asked for at its status port, as anybody outside would; ``book`` has what it
tells by itself.
"""

import asyncio
import contextlib
import json
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from lab.core.errors import InvalidRun
from lab.live.lifecycle.endpoints import ENDPOINTS, Endpoint
from lab.live.server.parts import scripted
from lab.live.server.serving import Options, serving
from lab.live.session.limit import Refusal
from lab.study.lifecycle.book import Book

HOST = "127.0.0.1"
START_S = 10.0
ANSWER_S = 5.0

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks nobody else, whatever proxy the environment names for http."""


@dataclass(frozen=True, slots=True)
class Count:
    """What a server says of itself."""

    at: float
    """CLOCK_MONOTONIC seconds, just after the answer: what it says held by then."""

    session_s: float
    """Session time of its answer."""

    ports: frozenset[int]
    """Its clients' ports, one per open connection."""

    counted: int
    """Sessions against its limit."""

    turned_away: int
    """Setups and upgrades that its limit refused."""


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs."""

    endpoint: Endpoint
    port: int
    status_port: int
    book: Book
    """What it told of its connections so far."""

    @property
    def url(self) -> str:
        """With the path of its endpoint."""
        return f"ws://{HOST}:{self.port}{self.endpoint.path}"

    def count(self) -> Count:
        """Ask it."""
        said = self._ask("/status")
        return Count(
            time.monotonic(),
            said["time"]["session"],
            frozenset(line["remote"][1] for line in said["lines"] if line["remote"] is not None),
            said["counted"],
            said["refused"][Refusal.LIMIT.value],
        )

    def lapse(self, factor: float) -> None:
        """Let its session time run faster from now on."""
        self._ask("/lapse", {"since": None, "factor": factor})

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{HOST}:{self.status_port}{path}", data)
        with _DIRECT.open(request, timeout=ANSWER_S) as answer:
            return json.load(answer)


@contextlib.asynccontextmanager
async def running(endpoints: Iterable[Endpoint] = ENDPOINTS.values(), **changes: Any) -> AsyncIterator[list[Server]]:
    """A server for each endpoint, on loopback; the event loop that waits for them goes on meanwhile.

    Args:
        endpoints: Whose.
        changes: Fields of their profiles, as for ``Profile.with_``.

    Raises:
        InvalidRun: they did not start within their time.
        OSError: there was no port or file for them.
    """
    made: list[Server] = []
    failed: list[Exception] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for endpoint in endpoints:
                options = Options(endpoint.server.with_(**changes), HOST, status_port=0, status_host=HOST, seed=1)
                book = Book()
                server = await stack.enter_async_context(serving(options, scripted(), tell=book.tell))
                assert server.status_port is not None
                made.append(Server(endpoint, server.port("ws") or 0, server.status_port, book))
            ready.set()
            await asyncio.to_thread(over.wait)

    def live() -> None:
        try:
            asyncio.run(serve())
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=live, name="session servers")
    thread.start()
    try:
        if not await asyncio.to_thread(ready.wait, START_S):
            raise InvalidRun(f"The session servers were not ready within {START_S} s.")
        if not failed:
            yield made
    finally:
        over.set()
        await asyncio.to_thread(thread.join)
    if failed:
        raise failed[0]
