"""Why a kernel refuses what the testbed needs, in words, with the one line that mends it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent.rpc import too_many_files

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST = "/proc/sys/user/max_user_namespaces"

_CONTAINER = "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --cap-add SYS_ADMIN"


def read_setting(path: str) -> str | None:
    """Contents of a one-line file of /proc, None where there is none."""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None


def explain(error: Exception, read: Callable[[str], str | None] = read_setting) -> Exception:
    """The error as the user should read it.

    Args:
        error: What a system call raised.
        read: Reads a kernel setting; another one in tests.

    Returns:
        ``EnvironmentNotReady`` where the kernel or its settings forbid namespaces, else the error itself.
    """
    if not isinstance(error, OSError):
        return error
    if error.errno in (errno.ENOSPC, errno.EUSERS) or read(_MOST) == "0":
        return EnvironmentNotReady(
            f"The kernel allows no more user or network namespaces ({error}).",
            fix="sudo sysctl -w user.max_user_namespaces=15000 user.max_net_namespaces=15000",
        )
    if error.errno == errno.EMFILE:
        return too_many_files()
    if error.errno == errno.EAGAIN:
        return EnvironmentNotReady(f"This user can start no more processes ({error}).", fix="ulimit -u unlimited")
    if error.errno == errno.EOPNOTSUPP:
        return EnvironmentNotReady(f"This kernel has no virtual Ethernet pairs ({error}).", fix="sudo modprobe veth")
    if error.errno in (errno.EINVAL, errno.ENOSYS) and "unshare" in str(error):
        return EnvironmentNotReady(
            f"This kernel lacks user, network or PID namespaces ({error}).",
            fix="boot a kernel with CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_PID_NS",
        )
    if error.errno not in (errno.EPERM, errno.EACCES):
        return error
    if read(_APPARMOR) == "1" and os.geteuid() != 0:
        return EnvironmentNotReady(
            "AppArmor forbids user namespaces to ordinary users here.",
            fix="sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if read(_CLONE) == "0" and os.geteuid() != 0:
        return EnvironmentNotReady(
            "This kernel forbids user namespaces to ordinary users.",
            fix="sudo sysctl -w kernel.unprivileged_userns_clone=1",
        )
    return EnvironmentNotReady(
        f"Namespaces are forbidden here, as in a container with the default restrictions ({error}).", fix=_CONTAINER
    )
