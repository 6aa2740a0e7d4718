"""The caller's handle on its fork server: started at the first testbed, one per process."""

import atexit
import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent.rpc import send_with_fds
from lab.testbed.netns.forkserver import MARK
from lab.testbed.owner import own_identity

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0

_BOOT = "import sys; sys.path[:] = {path!r}; from lab.testbed.netns.forkserver import main; main()"
"""The same modules as the caller's, wherever those come from."""


class ForkServer:
    """One running fork server.

    Raises:
        EnvironmentNotReady: the kernel does not let this user make namespaces.
    """

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        boot = _BOOT.format(path=[str(Path(entry).resolve()) for entry in sys.path])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", boot, MARK, str(theirs.fileno()), own_identity()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def make(self, spec: object, fds: list[int]) -> None:
        """Ask for a testbed; the rest is heard on its event socket.

        Raises:
            OSError: the server is gone.
        """
        send_with_fds(self._control, spec, fds)

    def close(self) -> None:
        """End the server and every testbed of it."""
        self._control.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def abandon(self) -> None:
        """In a fork of the owner: let go, so that the owner's end is still the server's end."""
        self._control.close()
        self._process.returncode = 0

    def _greet(self) -> None:
        self._control.settimeout(_START_TIMEOUT_S)
        greeting = self._control.recv(1 << 16)
        if not greeting:
            raise EnvironmentNotReady(
                "The fork server ended before it was ready; its message is above.",
                fix=f"run: {sys.executable} -c 'import lab.testbed.netns.forkserver'",
            )
        error = pickle.loads(greeting)  # noqa: S301 - from our own child
        if error is not None:
            raise error
        self._control.settimeout(None)


_lock = threading.Lock()
_server: ForkServer | None = None


def launch(spec: object, fds: list[int]) -> None:
    """Ask this process's fork server for a testbed, starting it where there is none."""
    global _server
    with _lock:
        if _server is not None:
            try:
                _server.make(spec, fds)
            except OSError:
                # It was killed from outside; its testbeds are gone with it.
                _server.close()
                _server = None
            else:
                return
        _server = ForkServer()
        _server.make(spec, fds)


def shut_down() -> None:
    """End this process's fork server, if it has one; the next testbed starts another."""
    global _server
    with _lock:
        if _server is not None:
            _server.close()
            _server = None


def _forget() -> None:
    global _server, _lock
    _lock = threading.Lock()
    if _server is not None:
        _server.abandon()
        _server = None


atexit.register(shut_down)
os.register_at_fork(after_in_child=_forget)
