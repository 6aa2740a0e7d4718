"""uvicorn around the application: in this thread until a signal, or in a thread of its own beside a testbed."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import uvicorn

from lab.control import warmth
from lab.control.address import Address, listening
from lab.control.app import guarded
from lab.control.controller import Controller
from lab.control.router import ControlledRouter
from lab.core.errors import InvalidRun

_START_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0

_GRACE_S = 1
"""For answers that are under way at the end."""


class Server(uvicorn.Server):
    """One server on a socket that is open already.

    Args:
        controller: Closed when the server is told to end, so that flows heal and event streams end before it waits.
        token: For TCP; None on a Unix socket.
        names: Host names that it is reached by.
        ready: Called once requests are answered.
    """

    def __init__(
        self, controller: Controller, token: str | None, names: Iterable[str], *, ready: Callable[[], object]
    ) -> None:
        self._controller = controller
        self._ready = ready
        application = guarded(controller, token, names)
        self._application, self._token = application, token
        super().__init__(
            uvicorn.Config(
                application,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer one request of its own first, then those of others."""
        await warmth.request(self._application, self._token)
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at SIGTERM and SIGINT, and return: uvicorn would send itself the signal again, and nothing be undone."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Heal and end the streams; then close what is open."""
        await asyncio.to_thread(self._controller.close)
        await super().shutdown(sockets)


@contextlib.contextmanager
def beside(
    router: ControlledRouter,
    address: Address,
    folder: Path,
    *,
    token: str | None = None,
    heartbeat_s: float | None = None,
) -> Iterator[tuple[Controller, Address]]:
    """The control API of a testbed's router, served by a thread of this process.

    Args:
        router: The testbed's; it outlives this.
        address: A Unix socket, or TCP with a token.
        folder: For the captures.
        token: What every request on TCP must carry.
        heartbeat_s: Dead-man switch.

    Yields:
        The controller, and where it listens.

    Raises:
        UsageError: something else listens there.
    """
    with (
        Controller(router, folder, heartbeat_s=heartbeat_s) as controller,
        serving(controller, address, token) as where,
    ):
        yield controller, where


@contextlib.contextmanager
def serving(controller: Controller, address: Address, token: str | None = None) -> Iterator[Address]:
    """A controller's API, served by a thread of this process; its end closes the controller.

    Args:
        controller: Entered.
        address: A Unix socket, or TCP with a token.
        token: What every request on TCP must carry.

    Yields:
        Where it listens.

    Raises:
        UsageError: something else listens there.
    """
    assert address.unix or token is not None, "TCP without a token"
    with listening(address) as (opened, where):
        ready = threading.Event()
        server = Server(controller, None if address.unix else token, (), ready=ready.set)
        thread = threading.Thread(target=server.run, args=([opened],), name="lab-control-http", daemon=True)
        thread.start()
        try:
            if not ready.wait(_START_TIMEOUT_S):
                raise InvalidRun(f"The control API did not come up within {_START_TIMEOUT_S:g} s.")
            yield where
        finally:
            server.should_exit = True
            thread.join(_END_TIMEOUT_S)
