"""Sysctls of the network namespace that this process is in."""

import errno
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, Unsupported, UsageError

_ROOT = "/proc/sys"


def read(name: str) -> str:
    """Value of a sysctl, white space folded to single spaces.

    Raises:
        Unsupported: this kernel has no such key, or does not let it be read.
        UsageError: the name is not one of a network namespace.
    """
    path = _path(name)
    try:
        return " ".join(path.read_text(encoding="utf-8").split())
    except FileNotFoundError:
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
    path = _path(name)
    if not path.is_file():
        raise _missing(name)
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        if error.errno == errno.EROFS:
            raise EnvironmentNotReady(
                f"/proc/sys is read-only here, so {name} cannot be set.",
                fix="docker run --security-opt systempaths=unconfined (or --privileged)",
            ) from error
        if error.errno in (errno.EPERM, errno.EACCES):
            raise Unsupported(f"The kernel does not let a namespace set {name} to {value!r}.") from error
        raise UsageError(f"The kernel refuses {value!r} for {name}: {error.strerror}.") from error


def _path(name: str) -> Path:
    """Where a key lies; as sysctl(8), a name with slashes may hold dots (``net/ipv4/conf/eth0.5/forwarding``)."""
    parts = name.split("/") if "/" in name else name.split(".")
    # Other trees belong to the whole machine, and root in a user namespace with an identity map may write them.
    if parts[0] != "net" or any(part in ("", ".", "..") for part in parts):
        raise UsageError(
            f"{name!r} is not a sysctl of a network namespace.",
            fix="use a key under net, such as net.ipv4.tcp_retries2",
        )
    return Path(_ROOT, *parts)


def _missing(name: str) -> Unsupported:
    return Unsupported(f"This kernel has no {name} in a network namespace.")
