"""Reads the options of a user's sockets: a side container in the process namespace of the user's container.

The kernel tells socket options to nobody but the process that has the socket, or one that may trace it. The user's
container shall have neither another first process nor a capability, so the lab looks in from beside it.

::

    caller                                          inspector (network of the holder, processes of the program)
    listens in the shared folder <-- connects ----- SYS_PTRACE, nothing else
    Channel ------------ socket_options ----------> lab.testbed.socket_options
"""

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import LabError
from lab.core.socket import SocketOptions
from lab.testbed.agent.rpc import Channel
from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.inner.seat import FOLDER

if TYPE_CHECKING:
    from docker.models.containers import Container

CAPABILITY = "SYS_PTRACE"
START_TIMEOUT_S = 20.0

_LOOK_S = 0.25
"""How often a waiting thread asks whether the container still runs."""

_MODULE = "lab.testbed.docker.inner.looking"


class Inspector:
    """One inspector; starts in the background, since its answer is wanted only before the cut.

    Args:
        engine: Where.
        image: The lab's.
        holder: Id of the container whose network it joins.
        program: Id of the container whose processes it sees.
        labels: For its container.
        shared: The folder that the caller and the node's containers share.
    """

    def __init__(
        self, engine: Engine, image: str, holder: str, program: str, labels: Mapping[str, str], shared: Path
    ) -> None:
        self._engine = engine
        self._image = image
        self._joined = (holder, program)
        self._labels = dict(labels)
        self._path = shared / f"inspector-{secrets.token_hex(4)}"
        self._shared = shared
        self._container: Container | None = None
        self._channel: Channel | None = None
        self._closed = False
        self._starting = threading.Thread(target=self._start, name="lab-inspector", daemon=True)
        self._starting.start()

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket; None where nobody could look, or the program has no such socket."""
        self._starting.join(START_TIMEOUT_S)
        if self._channel is None:
            return None
        try:
            found: SocketOptions | None = self._channel.call("socket_options", local_port, remote_port)
        except (LabError, TimeoutError):
            # The program has ended, and its process namespace with all that was in it.
            return None
        return found

    def close(self) -> None:
        """Remove it; idempotent."""
        self._closed = True
        self._starting.join(START_TIMEOUT_S)
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._remove()

    def _remove(self) -> None:
        from docker.errors import NotFound

        if self._container is not None:
            with engine_errors("removing an inspector"), contextlib.suppress(NotFound):
                self._container.remove(force=True, v=True)
            self._container = None

    def _start(self) -> None:
        """Bring it up, unless the program has ended meanwhile; whatever fails, no container stays that nobody knows."""
        with contextlib.suppress(LabError, OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self._path))
            self._path.chmod(0o777)
            listener.listen(1)
            self._create()
            near = self._accept(listener)
            if near is not None:
                near.settimeout(None)
                self._channel = Channel(near, "The inspector")
        self._path.unlink(missing_ok=True)
        if self._closed or self._channel is None:
            # Closed before this thread was done, or of no use: a program that has ended cannot be looked into.
            with contextlib.suppress(LabError):
                self._remove()

    def _accept(self, listener: socket.socket) -> socket.socket | None:
        """Its connection; None where its container ended, as it does with the program that it looks into."""
        deadline = time.monotonic() + START_TIMEOUT_S / 2
        listener.settimeout(_LOOK_S)
        while time.monotonic() < deadline and not self._closed:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
            assert self._container is not None
            with engine_errors("looking at an inspector"):
                self._container.reload()
            if self._container.status == "exited":
                return None
        return None

    def _create(self) -> None:
        from docker.types import Mount

        holder, program = self._joined
        with engine_errors("starting an inspector"):
            self._container = self._engine.client.containers.create(
                self._image,
                command=[_MODULE, str(Path(FOLDER, self._path.name))],
                network_mode=f"container:{holder}",
                pid_mode=f"container:{program}",
                cap_drop=["ALL"],
                # Reading another user's descriptors needs both: to trace it, and to look into its /proc.
                cap_add=[CAPABILITY, "DAC_READ_SEARCH"],
                mounts=[Mount(FOLDER, str(self._shared), "bind")],
                labels=self._labels,
            )
            self._container.start()
