"""Has everything that this process makes on an engine removed when this process ends, by whatever signal.

One reaper per process and engine, started at the first testbed. It comes up beside the testbed, whose things are
guarded from before the first of them on (``guard``); in its container runs ``reaping``.
"""

import atexit
import os
import threading
from typing import Self

from lab.testbed.docker.cleanup.guard import Guard
from lab.testbed.docker.engine import Engine


class Watch:
    """One testbed's claim on the reaper; close it when everything of that testbed is gone.

    Args:
        guard: Who watches.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._closed = False

    def wait(self) -> None:
        """Until the reaper's container watches; ask at the end of the start, because it takes as long as one.

        Raises:
            EnvironmentNotReady: it does not come up, with what it said.
        """
        self._guard.wait()

    @property
    def container(self) -> str:
        """Name of the reaper's container."""
        return self._guard.name

    @property
    def is_alive(self) -> bool:
        """Whether the reaper still watches."""
        return self._guard.is_alive

    def close(self) -> None:
        """Say that everything is gone; idempotent."""
        with _lock:
            if not self._closed:
                self._closed = True
                _claims.discard(self)

    def __enter__(self) -> Self:
        """The claim itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close it; not after an error, which may have left something behind: the reaper then removes it at the end."""
        if kind is None:
            self.close()


_lock = threading.Lock()
_guards: dict[str, Guard] = {}
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
        before = _guards.get(place)
        if before is None or not before.is_alive:
            _guards[place] = Guard(engine, image)
            if before is not None:
                # It may hold a standby process, which must not take its end for this process's.
                before.close(nothing_left=True)
        claim = Watch(_guards[place])
        _claims.add(claim)
        return claim


def shut_down() -> None:
    """End this process's reapers; what a testbed that was not closed has left, they remove first."""
    with _lock:
        for guard in _guards.values():
            if _claims and not guard.is_alive:
                guard.leave_to_successor()
            guard.close(nothing_left=not _claims)
        _guards.clear()
        _claims.clear()


def _forget() -> None:
    global _lock
    _lock = threading.Lock()
    for guard in _guards.values():
        guard.abandon()
    _guards.clear()
    _claims.clear()


atexit.register(shut_down)
os.register_at_fork(after_in_child=_forget)
