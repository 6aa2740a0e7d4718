"""The owner's side of the reaper: a container that removes everything of this process when this process ends.

::

    owner ------------- socket in a runtime folder ------------- reaper's container --- engine's socket
      +-- standby process, until the container has connected --------------------------------+

One per process and engine, started at the first testbed. The connection's end is the owner's end, whatever ended it.
From the moment at which the standby process runs, nothing is without a guard, so testbeds come up meanwhile.
"""

import atexit
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
from typing import Any, Final, Self

from lab.core.errors import EnvironmentNotReady, LabError
from lab.testbed.docker import reaping, refusals, standby
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import REAPER, labels, own
from lab.testbed.runtime import runtime_folder

START_TIMEOUT_S: Final = 60.0

_BOOT = "import sys; sys.path[:] = {path!r}; from lab.testbed.docker.standby import main; main()"
_FIX: Final = "lab image build"
_LONGEST_LINE = 1 << 16


class Reaper:
    """One reaper, from its start to this process's end.

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
            folder = cleanup.enter_context(runtime_folder())
            self._listener = cleanup.enter_context(_listen(folder))
            self._standby, theirs = socket.socketpair()
            cleanup.enter_context(self._standby)
            with theirs:
                self._process = _start_standby(theirs)
            cleanup.callback(self._process.wait)
            # Closed first, which is what ends that process.
            cleanup.callback(self._standby.close)
            self._standby.sendall(json.dumps(_order(engine, image, self.name, folder)).encode() + b"\n")
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
                self._process.wait()

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

    def abandon(self) -> None:
        """In a fork of the owner: let go, so that the owner's end is still what the reaper waits for."""
        for side in (self._connection, self._listener, self._standby):
            if side is not None:
                side.close()
        self._process.returncode = 0

    def _accept(self, deadline: float) -> socket.socket:
        """The container's connection, once it has said that all is in place."""
        readable: list[Any] = []
        while self._listener not in readable:
            readable, _, _ = select.select(
                [self._listener, self._standby], [], [], max(0.0, deadline - time.monotonic())
            )
            if not readable:
                raise EnvironmentNotReady(
                    f"The reaper's container did not come up within {START_TIMEOUT_S:g} s.",
                    fix="docker system df; docker ps",
                )
            if self._standby in readable:
                raise _failed(self._standby.recv(_LONGEST_LINE))
        connection, _ = self._listener.accept()
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        said = connection.recv(_LONGEST_LINE)
        if said != reaping.READY:
            connection.close()
            words = said.decode("utf-8", "replace").strip() or "the reaper's container ended at once"
            raise EnvironmentNotReady(f"The reaper's container is of no use: {words}.", fix=_FIX)
        return connection


class Watch:
    """One testbed's claim on the reaper; close it when everything of that testbed is gone.

    Args:
        reaper: Who watches.
    """

    def __init__(self, reaper: Reaper) -> None:
        self._reaper = reaper
        self._closed = False

    def wait(self) -> None:
        """Until the reaper's container watches; ask at the end of the start, because it takes as long as one.

        Raises:
            EnvironmentNotReady: it does not come up, with what it said.
        """
        self._reaper.wait()

    @property
    def is_alive(self) -> bool:
        """Whether the reaper still watches."""
        return self._reaper.is_alive

    def close(self) -> None:
        """Say that everything is gone; idempotent."""
        with _lock:
            if not self._closed:
                self._closed = True
                _claims.discard(self)

    def __enter__(self) -> Self:
        """The claim itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()


_lock = threading.Lock()
_reapers: dict[str, Reaper] = {}
_claims: set[Watch] = set()


def watch(engine: Engine, image: str) -> Watch:
    """Have all that this process makes on an engine removed when this process ends, by whatever signal.

    Call it before anything is made. Starts this process's reaper where none is alive, and does not wait for it.

    Args:
        engine: Where.
        image: The lab's image.

    Raises:
        Unsupported: the engine has no Unix socket.
    """
    with _lock:
        place = engine.address
        before = _reapers.get(place)
        if before is None or not before.is_alive:
            _reapers[place] = Reaper(engine, image)
            if before is not None:
                # It may hold a standby process, which must not take its end for this process's.
                before.close(nothing_left=True)
        claim = Watch(_reapers[place])
        _claims.add(claim)
        return claim


def shut_down() -> None:
    """End this process's reapers; what a testbed that was not closed has left, they remove first."""
    with _lock:
        for reaper in _reapers.values():
            reaper.close(nothing_left=not _claims)
        _reapers.clear()
        _claims.clear()


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
        [sys.executable, "-c", boot, standby.MARK, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # What it has to say, it says on the socket; a pipe of the owner's must not outlive the owner.
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _order(engine: Engine, image: str, name: str, folder: Path) -> dict[str, Any]:
    """What the standby process needs to know."""
    owner, version = own(), ".".join(map(str, engine.api))
    return {
        "engine": str(engine.socket),
        "version": version,
        "owner": [owner.identity, owner.boot],
        "name": name,
        "container": {
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
        "GroupAdd": [] if engine.is_rootless else [str(engine.socket.stat().st_gid)],
        "LogConfig": {"Type": "none"},
        "Mounts": [
            {"Type": "bind", "Source": str(engine.socket.resolve()), "Target": reaping.ENGINE},
            {"Type": "bind", "Source": str(folder.resolve()), "Target": reaping.FOLDER},
        ],
    }


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


def _forget() -> None:
    global _lock
    _lock = threading.Lock()
    for reaper in _reapers.values():
        reaper.abandon()
    _reapers.clear()
    _claims.clear()


atexit.register(shut_down)
os.register_at_fork(after_in_child=_forget)
