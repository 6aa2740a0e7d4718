"""Folders for what a process needs on disk only while it runs: sockets, above all.

::

    $XDG_RUNTIME_DIR/blackhole-lab/      or /tmp/blackhole-lab-UID/, for this user alone
        17:4711:4026531836-1.lock        held by its owner with flock(2); the kernel lets go when the owner ends
        17:4711:4026531836-1/            the owner's files
"""

import contextlib
import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from lab.core.errors import EnvironmentNotReady
from lab.testbed.owner import own_identity

_LOCK = ".lock"
_numbers = itertools.count(1)
_held: set[int] = set()
"""Descriptors of this process's own locks."""


def runtime_root() -> Path:
    """Where the lab's runtime folders of this user lie; it need not exist."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir():
        return Path(given, "blackhole-lab")
    return Path("/tmp", f"blackhole-lab-{os.geteuid()}")  # noqa: S108 - _require_own guards against a stranger's


@contextlib.contextmanager
def runtime_folder() -> Iterator[Path]:
    """A new folder of this process, removed at the end; ``stale`` finds it where the process was killed.

    Raises:
        EnvironmentNotReady: the place belongs to somebody else.
    """
    root = runtime_root()
    root.mkdir(mode=0o700, exist_ok=True)
    _require_own(root)
    folder = root / f"{own_identity()}-{next(_numbers)}"
    with _locked(folder) as lock:
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            yield folder
        finally:
            # A fork of the owner comes by here too, where it ends while the owner goes on.
            if own_identity() == folder.name.rpartition("-")[0]:
                _remove(folder, lock)


def stale() -> list[Path]:
    """Folders whose owner has ended."""
    root = runtime_root()
    if not root.is_dir():
        return []
    _require_own(root)
    return [path.with_suffix("") for path in sorted(root.glob(f"*{_LOCK}")) if not _is_held(path)]


def remove_stale(folder: Path) -> bool:
    """Remove a folder of ``stale``; whether it was there and its owner still gone."""
    lock = folder.with_name(folder.name + _LOCK)
    try:
        # Not created: a lock that vanished meanwhile was removed by its owner or another sweep.
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        _remove(folder, lock)
        return True
    finally:
        os.close(fd)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """Hold a folder's lock; the file is made before the folder, so that no folder is ever without."""
    lock = folder.with_name(folder.name + _LOCK)
    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        # A sweep may have removed the file between the two calls.
        if lock.exists() and lock.stat().st_ino == os.fstat(fd).st_ino:
            break
        os.close(fd)
    _held.add(fd)
    try:
        yield lock
    finally:
        if fd in _held:
            _held.discard(fd)
            os.close(fd)


def _is_held(lock: Path) -> bool:
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _remove(folder: Path, lock: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.unlink(missing_ok=True)


def _require_own(root: Path) -> None:
    status = root.lstat()
    if root.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise EnvironmentNotReady(
            f"{root} is not a folder of this user alone.", fix=f"rm -r {root}, or set XDG_RUNTIME_DIR"
        )


def _let_go_of_all() -> None:
    """In a fork of the owner: a lock is held until its last descriptor is closed, and must end with the owner."""
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_of_all)
