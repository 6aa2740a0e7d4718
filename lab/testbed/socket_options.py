"""Options of another program's socket, read through a duplicate of its descriptor.

The kernel lists the options that decide a give-up nowhere (inet_diag has none of them), so the only witness is
``getsockopt`` on the socket itself. ``pidfd_getfd`` (Linux 5.6) gives a duplicate without stopping the program.
"""

import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from lab.core.socket import SocketOptions, TcpState
from lab.testbed.sockets import list_sockets

SYS_PIDFD_GETFD = 438
"""The same number on every architecture but alpha (include/uapi/asm-generic/unistd.h)."""

_libc = ctypes.CDLL(None, use_errno=True)


def socket_options(local_port: int, remote_port: int) -> SocketOptions | None:
    """Options of the one connection with these ports in this process's network namespace.

    Returns:
        None where no connection has these ports or several do, and for the reasons of ``read_options``.
    """
    ends = (local_port, remote_port)
    found = [
        sample
        for sample in list_sockets()
        if (sample.local.port, sample.remote.port) == ends and sample.state != TcpState.LISTEN and sample.inode
    ]
    return read_options(found[0].inode) if len(found) == 1 else None


def read_options(inode: int, proc: Path = Path("/proc")) -> SocketOptions | None:
    """Options of the socket with this inode.

    Args:
        inode: ``SocketSample.inode``; 0 is an orphan, which nobody owns.
        proc: The /proc of this process's PID namespace.

    Returns:
        None where the owner cannot be found (an orphan, a process outside the PID namespace), or where the kernel does
        not let this process take its descriptor (older than 5.6, seccomp, no ptrace rights over the owner).
    """
    if inode == 0 or (proc / "self").readlink() != Path(str(os.getpid())):
        # A /proc of another PID namespace numbers processes differently: the pid found there is someone else's here.
        return None
    for pid, descriptor in _owners(inode, proc):
        options = _options_through(pid, descriptor, inode)
        if options is not None:
            return options
    return None


def _owners(inode: int, proc: Path) -> Iterator[tuple[int, int]]:
    """Process ids and descriptors that refer to the socket."""
    target = f"socket:[{inode}]"
    for process in proc.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()) == target:
                    yield int(process.name), int(descriptor.name)
        except OSError:
            continue  # It has exited, or is not ours to look into.


def _options_through(pid: int, descriptor: int, inode: int) -> SocketOptions | None:
    try:
        duplicate = _duplicate(pid, descriptor)
    except OSError:
        return None
    # As long as this process holds the duplicate, a close() by the program sends no FIN and frees nothing: the socket
    # has one more user. So read and close, microseconds later, with nothing in between that could wait.
    try:
        if os.fstat(duplicate).st_ino != inode:
            return None  # The program closed it and got the number anew.
        return _read(duplicate)
    except OSError:
        return None
    finally:
        os.close(duplicate)


def _duplicate(pid: int, descriptor: int) -> int:
    pidfd = os.pidfd_open(pid)
    try:
        duplicate: int = _libc.syscall(SYS_PIDFD_GETFD, pidfd, descriptor, 0)
        if duplicate < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return duplicate
    finally:
        os.close(pidfd)


def _read(descriptor: int) -> SocketOptions:
    """The options in force: where the program set none, the kernel answers with its namespace's default.

    SO_ERROR is left alone: reading it would take the error that the program is waiting for.
    """
    # Named as non-blocking, or Python would apply its own default timeout to the program's socket.
    kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    view = socket.socket(socket.AF_INET, kind, socket.IPPROTO_TCP, fileno=descriptor)
    try:

        def tcp(option: int) -> int:
            return view.getsockopt(socket.IPPROTO_TCP, option)

        user_timeout_ms = tcp(socket.TCP_USER_TIMEOUT)
        return SocketOptions(
            user_timeout_s=user_timeout_ms / 1e3 if user_timeout_ms else None,
            keepalive=bool(view.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)),
            keepalive_idle_s=float(tcp(socket.TCP_KEEPIDLE)),
            keepalive_interval_s=float(tcp(socket.TCP_KEEPINTVL)),
            keepalive_count=tcp(socket.TCP_KEEPCNT),
            syn_retries=tcp(socket.TCP_SYNCNT),
            # Negative: the socket does not stay in FIN_WAIT2 at all.
            linger2_s=float(max(tcp(socket.TCP_LINGER2), 0)),
        )
    finally:
        view.detach()
