"""A container of the user's image as a program of a node: it joins the node's network, and gets nothing else."""

import contextlib
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.core.errors import LabError, UsageError
from lab.core.socket import SocketOptions
from lab.testbed.agent.events import Exit, Output, StreamEnd
from lab.testbed.agent.process import AgentProcess
from lab.testbed.agent.rpc import Channel
from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.inspector import Inspector

if TYPE_CHECKING:
    from docker.models.containers import Container

_STREAMS = {1: "stdout", 2: "stderr"}
"""Of the engine's frames: ``STREAM 0 0 0 LENGTH`` before each piece of output (Engine API, attach)."""

_HEADER = struct.Struct("!B3xI")
_SIGNALLED = 128
"""An engine reports a program that a signal ended as 128 and the signal's number, as a shell does."""

_END_TIMEOUT_S = 10.0
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class Joining:
    """What a program's container is made with."""

    node: str
    image: str
    holder: str
    """Id of the container whose network it joins."""

    labels: Mapping[str, str]


class ContainerProcess(AgentProcess):
    """A container's main process; fulfils ``ports.Process``.

    Args:
        channel: To the node's agent; not used for what the engine does.
        argv: The command, empty for the image's own.
        container: Created, not started.
        stream: Attached to it: its input and output, as the SDK wraps them.
        on_signal: Told before it is sent a signal, with its id.
    """

    def __init__(
        self,
        channel: Channel,
        argv: Sequence[str],
        container: "Container",
        stream: Any,
        on_signal: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(channel, 0, argv)
        self._container = container
        self._wrapper = stream
        # The SDK's wrapper can only read, and inherits the client's deadline: a program may be silent for hours.
        self._stream = stream._sock  # noqa: SLF001 - see above
        self._stream.settimeout(None)
        self._on_signal = on_signal
        self._reader = threading.Thread(target=self._read, name="lab-program", daemon=True)

    @property
    def id(self) -> str:
        """The container's."""
        return str(self._container.id)

    def start(self) -> None:
        """Start the container.

        Raises:
            UsageError: the command is not in the image.
        """
        at = time.monotonic()
        with engine_errors("starting a program's container"):
            self._container.start()
            self._container.reload()
        self.started(at, int(self._container.attrs["State"]["Pid"]))
        self._reader.start()

    def send_signal(self, number: int) -> None:
        """Send a signal; a program that has exited is no error."""
        from docker.errors import APIError

        self._on_signal(self.id)
        with contextlib.suppress(APIError):
            self._container.kill(signal=signal.Signals(number).name)

    def write(self, text: str) -> None:
        """Write to its standard input."""
        self._stream.sendall(text.encode())

    def close_stdin(self) -> None:
        """End its standard input."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(1)

    def remove(self) -> None:
        """End and remove the container; idempotent."""
        from docker.errors import NotFound

        with engine_errors("removing a program's container"), contextlib.suppress(NotFound):
            self._container.remove(force=True, v=True)
        if self._reader.ident is not None:
            self._reader.join(_END_TIMEOUT_S)
        for side in (self._stream, self._wrapper):
            side.close()

    def _read(self) -> None:
        """Report all output, then the end."""
        for stream, data in _frames(self._stream):
            self.handle(Output("", 0, _STREAMS.get(stream, "stdout"), time.monotonic(), data, 0))
        at = time.monotonic()
        for name in _STREAMS.values():
            self.handle(StreamEnd("", 0, name, at, 0))
        try:
            with engine_errors("waiting for a program's end"):
                status = int(self._container.wait(timeout=_END_TIMEOUT_S)["StatusCode"])
        except LabError:
            # Removed meanwhile, or the engine is gone: how it ended is not known.
            self.abandon()
            return
        self.handle(Exit("", 0, at, _returncode(status)))


class Launcher:
    """Starts the containers of one node.

    Args:
        engine: Where.
        joining: With what.
        channel: To the node's agent.
        inspect: Starts an inspector beside a program's container, whose id it is given.
        on_signal: Told before a program is sent a signal, with its container's id.
    """

    def __init__(
        self,
        engine: Engine,
        joining: Joining,
        channel: Channel,
        inspect: Callable[[str], Inspector],
        on_signal: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._joining = joining
        self._channel = channel
        self._inspect = inspect
        self._on_signal = on_signal
        self._processes: list[ContainerProcess] = []
        self._inspectors: list[Inspector] = []

    def start(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> ContainerProcess:
        """Run the image's command, or another one in its place.

        Raises:
            UsageError: there is no such command in the image.
            EnvironmentNotReady: there is no such image.
        """
        if isinstance(argv, str):
            raise UsageError(f"A command is a list of words, not {argv!r}.", fix="split it with shlex.split")
        with engine_errors("making a program's container"):
            container = self._engine.client.containers.create(
                self._joining.image,
                command=list(argv) or None,
                network_mode=f"container:{self._joining.holder}",
                environment=dict(env or {}),
                working_dir=None if cwd is None else str(cwd),
                stdin_open=True,
                labels=dict(self._joining.labels),
            )
            try:
                stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "logs": 1})
            except BaseException:
                # Nobody else knows of it yet.
                container.remove(force=True)
                raise
        process = ContainerProcess(
            self._channel,
            list(argv) or [f"the command of image {self._joining.image}"],
            container,
            stream,
            self._on_signal,
        )
        self._processes.append(process)
        process.start()
        self._inspectors.append(self._inspect(process.id))
        return process

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one of the programs' sockets; None where nobody could look."""
        looks = (inspector.socket_options(local_port, remote_port) for inspector in self._inspectors)
        return next((options for options in looks if options is not None), None)

    def close(self) -> None:
        """Remove every container."""
        for inspector in self._inspectors:
            inspector.close()
        for process in self._processes:
            process.remove()
        self._inspectors.clear()
        self._processes.clear()


def _frames(stream: Any) -> Iterator[tuple[int, bytes]]:
    """Stream number and octets of each frame, until the container ends."""
    while (header := _exactly(stream, _HEADER.size)) is not None:
        number, length = _HEADER.unpack(header)
        while length:
            data = stream.recv(min(length, _CHUNK))
            if not data:
                return
            length -= len(data)
            yield number, data


def _exactly(stream: Any, length: int) -> bytes | None:
    data = b""
    while len(data) < length:
        try:
            more = stream.recv(length - len(data))
        except OSError:
            return None
        if not more:
            return None
        data += more
    return data


def _returncode(status: int) -> int:
    signals = {int(number) for number in signal.valid_signals()}
    return _SIGNALLED - status if status - _SIGNALLED in signals else status
