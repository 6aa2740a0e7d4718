"""Sysctls of the network namespace that this process is in.

A test aid: the names in the environment variable ``LAB_WITHOUT_SYSCTLS``, separated by commas, are treated as absent,
so that what the lab does on an older kernel can be tried on a newer one.
"""

import errno
import os
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, LabError, Unsupported, UsageError

_ROOT = "/proc/sys"

HIDDEN = "LAB_WITHOUT_SYSCTLS"
"""Environment variable: sysctls to do without, separated by commas; read when a testbed's processes start."""


def read(name: str) -> str:
    """Value of a sysctl, white space folded to single spaces.

    Raises:
        Unsupported: this kernel has no such key, or does not let it be read.
        UsageError: the name is not one of a network namespace.
    """
    path = _path(name)
    try:
        return " ".join(path.read_text(encoding="utf-8").split())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise _missing(name) from None
    except OSError as error:
        raise Unsupported(f"{name} cannot be read: {error.strerror}.") from error


def write(name: str, value: str) -> None:
    """Set a sysctl.

    Raises:
        Unsupported: this kernel has no such key, or does not let a namespace set it so.
        UsageError: the kernel refuses the value, or the name is not one of a network namespace.
        EnvironmentNotReady: /proc/sys is read-only here.
    """
    try:
        fd = os.open(_path(name), os.O_WRONLY | os.O_CLOEXEC)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise _missing(name) from None
    except OSError as error:
        raise _refused(name, value, error) from error
    try:
        # One write(2): the kernel takes the first for the whole value.
        os.write(fd, value.encode())
    except OSError as error:
        raise _refused(name, value, error) from error
    finally:
        os.close(fd)


def _refused(name: str, value: str, error: OSError) -> LabError:
    if error.errno == errno.EROFS:
        return EnvironmentNotReady(
            f"/proc/sys is read-only here, so {name} cannot be set.",
            fix="docker run --security-opt systempaths=unconfined (or --privileged)",
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return Unsupported(f"The kernel does not let a namespace set {name} to {value!r}.")
    return UsageError(f"The kernel refuses {value!r} for {name}: {error.strerror}.")


def _path(name: str) -> Path:
    """Where a key lies; as sysctl(8), a name with slashes may hold dots (``net/ipv4/conf/eth0.5/forwarding``)."""
    parts = name.split("/") if "/" in name else name.split(".")
    # Other trees belong to the whole machine, and root in a user namespace with an identity map may write them.
    if parts[0] != "net" or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise UsageError(
            f"{name!r} is not a sysctl of a network namespace.",
            fix="use a key under net, such as net.ipv4.tcp_retries2",
        )
    if ".".join(parts) in os.environ.get(HIDDEN, "").replace(" ", "").split(","):
        raise _missing(name)
    return Path(_ROOT, *parts)


def _missing(name: str) -> Unsupported:
    return Unsupported(f"This kernel has no {name} in a network namespace.")
