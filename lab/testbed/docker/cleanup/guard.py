"""One reaper, as its owner holds it: the container that removes everything of this process when this process ends.

::

    owner ------------- socket in a runtime folder ------------- reaper's container --- engine's socket
      +-- standby process, until the container has connected --------------------------------+

The connection's end is the owner's end, whatever ended it. From the moment at which the standby process runs, nothing
is without a guard.
"""

import contextlib
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from lab.core.errors import EnvironmentNotReady, LabError
from lab.testbed.docker import refusals
from lab.testbed.docker.cleanup import reaping, standby
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import REAPER, labels, own
from lab.testbed.owner import own_identity
from lab.testbed.runtime import runtime_folder

START_TIMEOUT_S: Final = 60.0

_END_TIMEOUT_S: Final = 5.0
_BOOT: Final = "import sys; sys.path[:] = {path!r}; from lab.testbed.docker.cleanup.standby import main; main()"
_FIX: Final = "lab image build"
_LONGEST_LINE: Final = 1 << 16


class Guard:
    """One reaper, from its start on.

    Args:
        engine: Where.
        image: The lab's image.
    """

    def __init__(self, engine: Engine, image: str) -> None:
        self._cleanup = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._failure: LabError | None = None
        self.name = f"blackhole-lab-reaper-{secrets.token_hex(6)}"
        """Of its container."""
        with contextlib.ExitStack() as cleanup:
            self._folder = folder = cleanup.enter_context(runtime_folder())
            self._listener = cleanup.enter_context(_listen(folder))
            self._standby, theirs = socket.socketpair()
            cleanup.enter_context(self._standby)
            with theirs:
                self._process = _start_standby(theirs)
            cleanup.callback(_await_end, self._process)
            # Closed first, which is what ends that process.
            cleanup.callback(self._standby.close)
            self._order = _order(engine, image, self.name, folder)
            _hand(self._standby, self._order)
            self._cleanup = cleanup.pop_all()

    def wait(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until the container watches.

        Raises:
            EnvironmentNotReady: it does not come up, with what it said.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._connection is None:
                try:
                    self._connection = self._accept(time.monotonic() + timeout_s)
                except LabError as error:
                    self._failure = error
                    raise
                # Whatever became of that process, it has no work left.
                with contextlib.suppress(OSError):
                    self._standby.sendall(standby.RELIEVED)
                _await_end(self._process)

    @property
    def is_alive(self) -> bool:
        """Whether it watches, or is about to."""
        if self._failure is not None:
            return False
        # Neither says anything as long as all is well: what can be read is its end, or why it failed.
        readable, _, _ = select.select([self._connection or self._standby], [], [], 0)
        return not readable

    def close(self, *, nothing_left: bool) -> None:
        """End it.

        Args:
            nothing_left: Whether all that this process made is gone; otherwise the reaper removes it now.
        """
        side, word = (self._standby, standby.DISMISSED)
        if self._connection is not None:
            side, word = (self._connection, reaping.DISMISSED)
            self._cleanup.callback(self._connection.close)
        if nothing_left:
            with contextlib.suppress(OSError):
                side.sendall(word)
        self._cleanup.close()

    def leave_to_successor(self) -> None:
        """Have a process of its own remove everything of this one, for a reaper that ended before its owner.

        So it is where the engine was restarted: it ends all containers, the reaper's too, and is not there at once to
        remove them.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                # It removes once this end is closed, and nobody waits for it.
                _start_standby(theirs).returncode = 0
            _hand(ours, {key: value for key, value in self._order.items() if key != standby.CONTAINER})

    def abandon(self) -> None:
        """In a fork of the owner: let go, so that the owner's end is still what the reaper waits for."""
        for side in (self._connection, self._listener, self._standby):
            if side is not None:
                side.close()
        self._process.returncode = 0

    def _accept(self, deadline: float) -> socket.socket:
        """The container's connection, once it has said that all is in place."""
        readable, _, _ = select.select([self._listener, self._standby], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise EnvironmentNotReady("The reaper's container does not come up.", fix="docker ps -a; docker system df")
        if self._listener not in readable:
            raise _failed(_read(self._standby))
        connection, _ = self._listener.accept()
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        said = _read(connection)
        if said != reaping.READY:
            connection.close()
            words = said.decode("utf-8", "replace").strip() or "the reaper's container ended at once"
            raise EnvironmentNotReady(f"The reaper's container is of no use: {words}.", fix=_FIX)
        return connection


def _listen(folder: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        # A path of the folder itself may be longer than an address may be.
        listener.bind(f"/proc/self/fd/{place}/{reaping.SOCKET}")
        listener.listen(1)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener


def _start_standby(theirs: socket.socket) -> "subprocess.Popen[bytes]":
    boot = _BOOT.format(path=[str(Path(entry).resolve()) for entry in sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", boot, standby.MARK, str(theirs.fileno()), own_identity()],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # What it has to say, it says on the socket; a pipe of the owner's must not outlive the owner.
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _hand(side: socket.socket, order: dict[str, Any]) -> None:
    side.sendall(json.dumps(order).encode() + b"\n")


def _await_end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # The engine keeps it waiting; it ends by itself, and nobody here depends on it.
        process.returncode = 0


def _order(engine: Engine, image: str, name: str, folder: Path) -> dict[str, Any]:
    """What the standby process needs to know."""
    owner, version = own(), ".".join(map(str, engine.api_version))
    return {
        "engine": str(engine.socket_path),
        "version": version,
        "owner": [owner.identity, owner.boot],
        "name": name,
        standby.CONTAINER: {
            "Image": image,
            "Cmd": [reaping.__name__, name, version, owner.identity, owner.boot],
            "Labels": labels("", REAPER),
            "User": _user(engine),
            # Process 1 has no default action for the signal that "docker stop" sends first.
            "StopSignal": "SIGKILL",
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": _host_config(engine, folder),
        },
    }


def _user(engine: Engine) -> str:
    """The caller's own user, who may open its runtime folder without any capability."""
    # A rootless engine's root is the user who runs it.
    return "0:0" if engine.is_rootless else f"{os.geteuid()}:{os.getegid()}"


def _host_config(engine: Engine, folder: Path) -> dict[str, Any]:
    return {
        "AutoRemove": True,
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        # SELinux would keep a container from the engine's socket.
        "SecurityOpt": ["no-new-privileges", "label=disable"],
        # Ids mean the same as here, where the engine maps them otherwise.
        "UsernsMode": "" if engine.is_rootless else "host",
        "GroupAdd": [] if engine.is_rootless else [str(engine.socket_path.stat().st_gid)],
        "LogConfig": {"Type": "none"},
        "Mounts": [
            {"Type": "bind", "Source": str(engine.socket_path.resolve()), "Target": reaping.ENGINE},
            {"Type": "bind", "Source": str(folder.resolve()), "Target": reaping.FOLDER},
        ],
    }


def _read(side: socket.socket) -> bytes:
    """What the other end says, empty where it has ended."""
    try:
        return side.recv(_LONGEST_LINE)
    except OSError:
        return b""


def _failed(news: bytes) -> LabError:
    """What the standby process said."""
    said: dict[str, str] = json.loads(news) if news.endswith(b"\n") else {}
    if "refused" in said:
        return refusals.explain(said["refused"])
    if "ended" in said:
        words = said["ended"] or "it said nothing"
        return EnvironmentNotReady(f"The reaper's container ended before it watched: {words}", fix=_FIX)
    if "lost" in said:
        return refusals.lost(f"starting the reaper got no answer ({said['lost']})")
    return LabError(f"The reaper's standby process failed: {said.get('crashed') or 'it was killed'}")
