"""A way between a client and a server that can go dark: nothing passes, both kernels go on acknowledging."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Path:
    """Forwards octets until it is frozen; connections that come later pass."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._gates: list[asyncio.Event] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    def freeze(self) -> None:
        """All present connections go dark."""
        for gate in self._gates:
            gate.clear()

    def thaw(self) -> None:
        """They carry what waited, and go on."""
        for gate in self._gates:
            gate.set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        gate = asyncio.Event()
        gate.set()
        self._gates.append(gate)
        self._writers += [writer, far_writer]
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.ensure_future(_pump(source, sink, gate))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            await gate.wait()
            sink.write(data)
            await sink.drain()
        await gate.wait()
        sink.close()


@contextlib.asynccontextmanager
async def path_to(url: str) -> AsyncIterator[Path]:
    """A path to a server on loopback."""
    path = Path(int(url.rsplit(":", 1)[1]))
    server = await asyncio.start_server(path.pass_on, "127.0.0.1", 0)
    path.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield path
    finally:
        server.close()
        await path.end()
