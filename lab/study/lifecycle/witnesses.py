"""Three witnesses of a session's end, each with the time at which it saw it: server, kernel, and who is still there.

The server's events are stamped as they happen (``book``), and the stream's end when a reader comes to it. The kernel is
asked every 20 ms, so that a socket's end is up to that much later than the truth; so is a stream's end where its event
loop stands still, since nobody can wait for it there.
"""

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from lab.core.errors import InvalidRun
from lab.core.flow import Endpoint as Address
from lab.core.socket import TcpState
from lab.study.lifecycle import ways
from lab.study.lifecycle.servers import HOST, Server
from lab.study.lifecycle.stage import Left, Reading, Stage
from lab.testbed.sockets import SocketTable

LOOK_S = 0.02
"""Between two looks at the kernel."""

COLLECT_S = 0.5
"""Between two collections: what is held by a cycle alone is found by the next one."""

AGREE_S = 5.0
"""Until a server's count must be what its events say."""

OVER = frozenset({TcpState.TIME_WAIT, TcpState.CLOSE, TcpState.LAST_ACK})
"""States of a socket that both ends are done with."""

FORGOTTEN = "none"
"""Of a socket that the kernel does not know any more."""


@dataclass(slots=True)
class Trial:
    """A session that was left, and what was seen of its end; instants are CLOCK_MONOTONIC seconds."""

    stage: Stage
    path: str
    left: Left
    kept: bool | None = None
    """Something held its service at the end of the watch."""

    socket: str = ""
    """Its TCP state when last asked for."""

    socket_over_at: float | None = None
    limit_s: float | None = None
    """Session seconds until the server ended it by itself."""

    @property
    def read_to_end_at(self) -> float | None:
        """When the reader came to a normal end."""
        return None if self.left.reading is None else self.left.reading.ended_at

    @property
    def finished(self) -> bool | None:
        """Whether it did; None where there is no stream any more."""
        return None if self.left.reading is None else self.left.reading.ended_at is not None

    @property
    def failed(self) -> bool | None:
        """Whether the reader was told an error; None where there is no stream any more."""
        return None if self.left.reading is None else self.left.reading.failed

    def after(self, at: float | None) -> float | None:
        """Seconds from its being left.

        Raises:
            InvalidRun: it was over before.
        """
        if at is None:
            return None
        if at < self.left.at:
            raise InvalidRun(
                f"{self.stage.variant.name}, {self.path}: the connection was over {self.left.at - at:.3f} s before it "
                "was left."
            )
        return at - self.left.at

    @property
    def over(self) -> bool:
        """Every witness has seen what it is to see."""
        left = self.left
        stream = self.finished is not False or self.path in ways.OPEN_STREAM
        service = left.service is None or left.gone_at is not None or self.path in ways.HELD
        return left.life.ended_at is not None and self.socket_over_at is not None and stream and service


class Watch:
    """Sessions that were left, each watched from then on; ``async with`` ends it."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []
        self._tasks: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks.append(asyncio.ensure_future(self._look()))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stop()

    def add(self, trial: Trial) -> None:
        """Watch a session that was just left."""
        self.trials.append(trial)
        if trial.left.reading is not None and not trial.left.here:
            self._tasks.append(asyncio.ensure_future(_read_there(trial.left.reading)))

    async def until_over(self, watch_s: float) -> None:
        """Wait until all are over, or the last of them was watched for long enough.

        Args:
            watch_s: For how long, seconds.

        Raises:
            InvalidRun: a server's count is not what its events say.
        """
        until = max(trial.left.at for trial in self.trials) + watch_s
        collect_at = 0.0
        while not all(trial.over for trial in self.trials) and time.monotonic() < until:
            if time.monotonic() > collect_at:
                gc.collect()
                collect_at = time.monotonic() + COLLECT_S
            await asyncio.sleep(LOOK_S)
        await self._stop()
        gc.collect()
        for trial in self.trials:
            trial.kept = None if trial.left.service is None else trial.left.service() is not None
        for server in {trial.stage.server.port: trial.stage.server for trial in self.trials}.values():
            await agrees(server)

    async def _look(self) -> None:
        with SocketTable() as kernel:
            while True:
                _ask(kernel, self.trials)
                await asyncio.sleep(LOOK_S)

    async def _stop(self) -> None:
        for trial in self.trials:
            if trial.left.reading is not None and trial.left.here:
                await trial.left.reading.stop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for failed in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(failed, Exception):
                raise failed


async def agrees(server: Server) -> None:
    """Hold a server's own count of connections to its events.

    Raises:
        InvalidRun: they differ, and go on to.
    """
    deadline = time.monotonic() + AGREE_S
    while (count := await asyncio.to_thread(server.count)).ports != (told := server.book.open_ports()):
        if time.monotonic() > deadline:
            raise InvalidRun(
                f"{server.endpoint.name} counts connections from {sorted(count.ports)}, and told of {sorted(told)}."
            )
        await asyncio.sleep(LOOK_S)


def _ask(kernel: SocketTable, trials: Sequence[Trial]) -> None:
    """The client's end of each connection that is not over yet."""
    for trial in trials:
        if trial.socket_over_at is None:
            ends = Address(HOST, trial.left.life.port), Address(HOST, trial.stage.server.port)
            found = kernel.query(*ends)
            trial.socket = FORGOTTEN if found is None else found.sample.state.name.lower()
            if found is None or found.sample.state in OVER:
                trial.socket_over_at = time.monotonic()


async def _read_there(reading: Reading) -> None:
    """Read what its own event loop does not: nobody can wait for it, and at its end nobody has to."""
    while not reading.responses.finished and reading.responses.error is None:
        await asyncio.sleep(LOOK_S)
    await reading.read()
