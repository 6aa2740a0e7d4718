"""The few system calls that Python 3.11 does not offer: namespaces, mounts, capabilities.

Every function raises ``OSError`` with the kernel's errno. Sources: the man pages unshare(2), setns(2), mount(2),
capget(2), prctl(2).
"""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 0x2

_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_NAME = 15
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process into new namespaces (CLONE_NEWPID: its children)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Move this process into the namespace behind a descriptor (CLONE_NEWPID: its children)."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, filesystem: str = "", flags: int = 0, data: str = "") -> None:
    """Mount, bind or change propagation, by ``flags``."""
    result = _libc.mount(
        source.encode(), os.fsencode(target), filesystem.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _check(result, f"mount {target}")


def umount(target: str, flags: int = 0) -> None:
    """Take away the topmost mount at ``target``."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), f"umount {target}")


def set_hostname(name: str) -> None:
    """Name the host of this UTS namespace."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, ctypes.c_size_t(len(encoded))), "sethostname")


def name_process(name: str) -> None:
    """Give this process the name that ps and lsns show; at most 15 octets."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl")


def drop_capabilities() -> None:
    """Give up every capability, as ``exec`` does for an ordinary user."""
    _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
