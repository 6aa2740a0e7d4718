"""A session server as a whole: ports, sessions, speech, log and status, from ``async with`` to its end."""

import asyncio
import contextlib
import dataclasses
import random
import resource
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from lab.live.clock import Clock
from lab.live.protocol import closing, paths
from lab.live.protocol.messages import Setup
from lab.live.server import bookings, certificates
from lab.live.server.door import Door, listen
from lab.live.server.ear import Ear
from lab.live.server.framelog import FrameLog
from lab.live.server.line import Line
from lab.live.server.shell import Shell, Tell, plain
from lab.live.server.status import StatusPort
from lab.live.session.house import House
from lab.live.session.ports import Model, SpeechEnd
from lab.live.session.profile import DEFAULT, Profile
from lab.programs.lateness import Lateness
from lab.programs.report import say

OPEN_S = 10.0
"""For the handshakes of TLS and of WebSocket, each."""

MOST_MESSAGE = 4 * 2**20
"""Octets of a message; a longer one is refused with 1009 before it is read. gRPC's own limit, which the real service's
front end is built on; what the service does was not seen."""

NO_SERVICE = f"No session service under this path. A client with an API key asks for {paths.developer()}\n"

FAREWELL_S = 0.5
"""How long the clients' answers are awaited when the server ends."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a server is to be."""

    profile: Profile = DEFAULT
    host: str | None = None
    """Address to listen on, None for all."""

    port: int | None = 0
    """For ws; 0 takes a free one, None none."""

    tls_port: int | None = None
    """For wss."""

    status_port: int | None = None
    status_host: str | None = None
    """Address to listen on, None for all."""

    ca: Path | None = None
    """Folder of the authority; needed for wss."""

    names: Sequence[str] = ()
    """Whom the certificate is for, beside the usual names."""

    seed: int | None = None
    """Of every draw, so that a run can be repeated; None for the system's randomness, which nobody guesses."""

    log: Path | None = None
    bookings: Path | None = None
    """The assistant's file, to be shown in the status."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the sessions are made of; replaced in tests."""

    model: Callable[[Profile, Setup, random.Random], Model]
    """For the setup that begins a session; draws from the server's one source of chance."""

    speech: Callable[[], SpeechEnd]
    recognise: Callable[[bytes], str]
    close: Callable[[], None] = lambda: None
    """Ends what they began, once the server has."""


class Serving:
    """A server that runs.

    Args:
        options: What it is to be.
        shell: The sessions and their connections.
        doors: Listening sockets by scheme.
        authority: The certificate to trust, where there is wss.
        ear: Understands speech.
    """

    def __init__(
        self, options: Options, shell: Shell, doors: dict[str, Door], authority: Path | None, ear: Ear
    ) -> None:
        self.shell = shell
        self.authority = authority
        self.status_port: int | None = None
        self._options = options
        self._doors = doors
        self._ear = ear
        self._lateness = Lateness(shell.late)

    def port(self, scheme: str) -> int | None:
        """The port of ws or wss, None where it is not served."""
        door = self._doors.get(scheme)
        return None if door is None else int(door.getsockname()[1])

    def report(self) -> dict[str, Any]:
        """What the status port tells."""
        shell, clock = self.shell, self.shell.clock
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **dataclasses.asdict(shell.house.status(now=clock.now())),
            "time": {"wall": time.monotonic(), "session": clock.now(), "factor": clock.factor},
            "lines": [_line(line) for line in shell.lines.values()],
            "opening": {scheme: door.opening for scheme, door in self._doors.items()},
            "dropped": {scheme: door.dropped for scheme, door in self._doors.items()},
            "defects": shell.defects,
            "deaf": self._ear.deaf,
            "log": {"path": str(self._options.log) if self._options.log else None, "lost": shell.log.lost},
            "bookings": bookings.report(self._options.bookings),
            "process": {"cpu_s": usage.ru_utime + usage.ru_stime, "rss_kib": usage.ru_maxrss},
            "late": self._lateness.figures(),
        }

    @contextlib.asynccontextmanager
    async def _open(self, context: ssl.SSLContext | None) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if self._options.status_port is not None:
                where = (self._options.status_host, self._options.status_port)
                port = StatusPort(self.shell, self.report, *where)
                stack.callback(port.close)
                self.status_port = port.port
            self._lateness.start()
            stack.callback(self._lateness.stop)
            servers = [
                await self._serve(door, context if scheme == "wss" else None) for scheme, door in self._doors.items()
            ]
            stack.push_async_callback(self._farewell, servers)
            yield

    async def _serve(self, door: Door, context: ssl.SSLContext | None) -> Server:
        return await serve(
            _until_over,
            sock=door,
            ssl=context,
            process_request=partial(self._admit, door),
            create_connection=partial(Line, self.shell),  # type: ignore[arg-type]  # it may be any factory
            compression=None,
            open_timeout=OPEN_S,
            ping_interval=None,
            close_timeout=None,
            max_size=MOST_MESSAGE,
            max_queue=None,
        )

    def _admit(self, door: Door, connection: ServerConnection, request: Request) -> Response | None:
        """Upgrade, or answer with an HTTP status."""
        door.opened(connection.remote_address)
        if paths.find(request.path) is None:
            return connection.respond(HTTPStatus.NOT_FOUND, NO_SERVICE)
        if not self.shell.house.admits():
            return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, closing.EXHAUSTED.reason + "\n")
        return None

    async def _farewell(self, servers: list[Server]) -> None:
        for server in servers:
            server.close(close_connections=False)
        lines = list(self.shell.lines.values())
        for line in lines:
            line.hang_up(closing.GOING_AWAY.code, closing.GOING_AWAY.reason)
        if lines:
            await asyncio.wait([asyncio.ensure_future(line.wait_closed()) for line in lines], timeout=FAREWELL_S)
        handlers = [task for server in servers for task in _handlers(server)]
        for task in handlers:
            task.cancel()
        for line in lines:
            line.give_up("the server ended")
        if handlers:
            await asyncio.wait(handlers, timeout=FAREWELL_S)
        # The doors are closed after this, and websockets before its version 17 looks at them until it is done.
        if servers:
            await asyncio.wait([asyncio.ensure_future(server.wait_closed()) for server in servers], timeout=FAREWELL_S)
        self.shell.ticker.stop()


@contextlib.asynccontextmanager
async def serving(options: Options, parts: Parts, *, tell: Tell = say) -> AsyncIterator[Serving]:
    """Serve sessions.

    Args:
        options: What the server is to be.
        parts: What its sessions are made of.
        tell: Told every event.

    Raises:
        OSError: a port is taken, or the log cannot be opened.
        EnvironmentNotReady: wss is wanted, and cryptography is not installed.
        UsageError: the authority's folder cannot be used.
    """
    _many_files()
    with contextlib.ExitStack() as stack:
        context = authority = None
        if options.tls_port is not None and options.ca is not None:
            by = certificates.authority(options.ca)
            names = [*options.names, *([options.host] if options.host else [])]
            context, authority = certificates.server_context(by, names), by.path
        log = FrameLog(options.log)
        stack.callback(log.close)
        wanted = {"ws": options.port, "wss": options.tls_port}
        doors = {
            scheme: stack.enter_context(contextlib.closing(listen(options.host, port)))
            for scheme, port in wanted.items()
            if port is not None
        }
        house = _house(options, parts)
        stack.callback(parts.close)
        ear = Ear(parts.recognise, lambda session, text: shell.heard(session, text))
        stack.callback(ear.close)
        shell = Shell(house, Clock(), log, ear.take, tell)
        made = Serving(options, shell, doors, authority, ear)
        async with made._open(context):  # noqa: SLF001 - its own module's
            yield made


def _house(options: Options, parts: Parts) -> House:
    draw = random.SystemRandom() if options.seed is None else random.Random(options.seed)  # noqa: S311 - a seed is asked for
    return House(
        options.profile,
        token=lambda: str(uuid.UUID(int=draw.getrandbits(128), version=4)),
        uniform=draw.uniform,
        model=lambda profile, setup: parts.model(profile, setup, draw),
        speech=parts.speech,
    )


def _handlers(server: Server) -> list["asyncio.Task[None]"]:
    """The tasks of its connections, those in their handshakes too; their name differs by websockets' version."""
    if (tasks := getattr(server, "handler_tasks", None)) is not None:
        return list(tasks)
    return list(getattr(server, "handlers", {}).values())


async def _until_over(connection: ServerConnection) -> None:
    assert isinstance(connection, Line)
    connection.begin()
    try:
        await connection.wait_closed()
    finally:
        # The server ends: nobody else has a connection whose end was told already and whose TCP is not over yet.
        connection.transport.abort()


def _line(line: Line) -> dict[str, Any]:
    return {
        "connection": line.number,
        "remote": plain(line.remote_address),
        "kind": line.kind.value,
        "unsent": line.unsent,
    }


def _many_files() -> None:
    """Allow as many sockets as the system lets this process have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
