"""What the nodes see of the file system that differs from the caller's: /proc, the names, the resolver.

All in a private mount namespace of the testbed: nothing is written to a disk, and nothing is left to remove.
"""

import contextlib
import errno
from pathlib import Path

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent import kernel

_SCRATCH = "/tmp"  # noqa: S108 - only the place of a mount that is taken away again, in a namespace of our own

_HIDDEN = ("/run/nscd", "/var/run/nscd")
"""Sockets of the host's name cache, which would answer for names that it does not know."""


def arrange(hosts: str) -> None:
    """Give this process's new mount namespace its own /proc, /etc/hosts and empty /etc/resolv.conf.

    Raises:
        EnvironmentNotReady: the machine has no /etc/hosts to mount over.
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    _mount_proc()
    kernel.mount("tmpfs", _SCRATCH, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    try:
        _put(hosts, "/etc/hosts")
        # A dangling or missing resolv.conf is as good as an empty one: no lookup leaves the testbed.
        with contextlib.suppress(FileNotFoundError):
            _put("", "/etc/resolv.conf")
    except FileNotFoundError as error:
        raise EnvironmentNotReady(
            "This machine has no /etc/hosts, so names cannot be made to resolve in the nodes.",
            fix="sudo touch /etc/hosts",
        ) from error
    finally:
        # The files stay alive in their bind mounts.
        kernel.umount(_SCRATCH, kernel.MNT_DETACH)
    for folder in _HIDDEN:
        if Path(folder).is_dir():
            kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")


def _mount_proc() -> None:
    """A /proc of the testbed's own PID namespace; the old one where a container masks parts of it."""
    try:
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    except OSError as error:
        # mount_too_revealing() in fs/namespace.c: no fresh /proc for a user namespace that sees only parts of one.
        if error.errno not in (errno.EPERM, errno.EACCES):
            raise


def _put(text: str, target: str) -> None:
    source = Path(_SCRATCH, target.replace("/", "_"))
    source.write_text(text, encoding="ascii")
    source.chmod(0o644)
    # mount(2) follows a symbolic link to its target, as resolv.conf often is one.
    kernel.mount(str(source), target, flags=kernel.MS_BIND)
