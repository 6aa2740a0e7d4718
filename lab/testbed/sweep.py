"""Finds and removes what a killed process of the lab left behind, and nothing that is not the lab's own.

The embedded testbed leaves nothing by construction; this is for the rest: folders of a killed owner, a fork server
that cannot end because it was stopped, and what is on a Docker engine although its owner and its reaper are gone.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.testbed import runtime
from lab.testbed.netns.forkserver import MARK
from lab.testbed.owner import has_ended

if TYPE_CHECKING:
    from lab.testbed.docker.removal import Thing

PATIENCE_S = 15.0
"""For what a reaper is removing at this moment: longer than one takes."""

_POLL_S = 0.5
_KILL = signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that outlived its owner."""

    kind: str
    """folder, process, container, network or volume."""

    name: str
    """Path, process id, or the engine's name for it."""

    owner: str
    """Identity of the process that made it."""


def find() -> list[Leftover]:
    """What ended processes left behind: this user's, and anybody's on an engine that this user may use."""
    return [
        *(_folder(path) for path in runtime.stale()),
        *(_process(*found) for found in _orphans()),
        *find_on_engines(),
    ]


def find_on_engines() -> list[Leftover]:
    """The part of ``find`` that is on an engine."""
    from lab.testbed.docker import sweep as engines

    return [_thing(one) for api in engines.local_engines() for one in engines.find_stale(api)]


def sweep(tell: Callable[[str], None] = lambda _: None) -> list[Leftover]:
    """Remove what ``find`` finds.

    Args:
        tell: Hears where it could not be looked.

    Returns:
        What was removed; not what went by itself meanwhile.
    """
    from lab.testbed.docker import sweep as engines

    folders = [_folder(path) for path in runtime.stale() if runtime.remove_stale(path)]
    processes = [_process(pid, owner) for pid, owner in _orphans() if _end(pid, owner)]
    # Last, because an engine can fail.
    return folders + processes + [_thing(one) for api in engines.local_engines(tell) for one in engines.sweep(api)]


def await_removal(found: Collection[Leftover], timeout_s: float) -> list[Leftover]:
    """What of this is on an engine still, after a while: it could not be removed."""
    deadline = time.monotonic() + timeout_s
    while left := [one for one in find_on_engines() if one in found] if found else []:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    return left


def _folder(path: Path) -> Leftover:
    return Leftover("folder", str(path), path.name.rpartition("-")[0])


def _process(pid: int, owner: str) -> Leftover:
    return Leftover("process", str(pid), owner)


def _thing(thing: "Thing") -> Leftover:
    return Leftover(thing.kind.value, thing.name, "" if thing.owner is None else thing.owner.identity)


def _orphans() -> Iterator[tuple[int, str]]:
    """Processes of fork servers whose owner has ended: id and owner."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            owner = _owner(int(process.name))
            if owner is not None and has_ended(owner):
                yield int(process.name), owner


def _owner(pid: int) -> str | None:
    """Who started the fork server that this process is or was forked from; None for any other process.

    Beyond doubt: this user's, started as the launcher starts it, word by word.
    """
    process = Path("/proc", str(pid))
    try:
        if process.stat().st_uid != os.geteuid():
            return None
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return None
    match words:
        case [_, "-c", boot, mark, descriptor, owner] if mark == MARK and "lab.testbed.netns.forkserver" in boot:
            return owner if descriptor.isdecimal() else None
    return None


def _end(pid: int, owner: str) -> bool:
    """Kill one process, unless its id is another's by now."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if _owner(pid) != owner:
            return False
        signal.pidfd_send_signal(process, _KILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(process)
    return True
