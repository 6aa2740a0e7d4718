"""A warm, single-threaded process that forks testbeds, so that each costs forks and no start-up.

Started once per calling process, as ``python -c ... blackhole-lab-forkserver FD OWNER``. It lives in a user namespace
and, as process 1, in a PID namespace of its own: when it ends, every testbed ends. It ends when the caller does, since
that closes the control socket.
"""

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent import kernel, modules, priority
from lab.testbed.agent.child import become
from lab.testbed.agent.rpc import receive_with_fds
from lab.testbed.names import NODES
from lab.testbed.netns import keeper, links, readiness, services
from lab.testbed.ports import TestbedSpec

MARK = "blackhole-lab-forkserver"
"""First argument of the process, by which ``lab clean`` knows it."""

_PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}
"""Signals that the interpreter ignores for itself, and restores in what it starts."""

_PRELOADED = ("argparse", "lab.programs.connection", "lab.programs.options")
"""What the lab's own programs import; loaded here, it costs each of them nothing."""

_MOST_FDS = 1 + len(NODES)


def main() -> NoReturn:
    """Be a fork server; arguments: mark, number of the control socket's descriptor, owner."""
    control = socket.socket(fileno=int(sys.argv[2]))
    _shed()
    priority.rise()
    try:
        _enter_namespaces()
        links.enter_origin()
        child = os.fork()
    except OSError as error:
        control.send(pickle.dumps(readiness.explain(error)))
        os._exit(0)
    if child:
        control.close()
        _outlive(child)
    # Testbeds are reaped by the kernel; the caller watches them through pidfds.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    kernel.name_process("lab-forkserver")
    shared = _start_services(control)
    if shared is None:
        problem = EnvironmentNotReady("pyroute2 cannot prepare links; its message is above.", fix="make setup")
        control.send(pickle.dumps(problem))
        os._exit(0)
    try:
        control.send(pickle.dumps(None))
    except ConnectionError:  # The caller was killed meanwhile.
        os._exit(0)
    _serve(control, shared)


def _shed() -> None:
    """Give up what came from the thread that happened to start this process; commands shall not inherit it."""
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _PYTHONS_OWN:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _enter_namespaces() -> None:
    """New user and PID namespaces; the caller's user ids, and as root all of them, mean the same inside."""
    if os.geteuid() == 0:
        with _map_writer():
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
        return
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    # user_namespaces(7): an ordinary user may map itself alone, and groups only after giving up setgroups.
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


@contextlib.contextmanager
def _map_writer() -> Iterator[None]:
    """A child that stays outside, where it may map every id, and does so after the body."""
    target = os.getpid()
    maps = [(f"/proc/{target}/{name}", _identity(name)) for name in ("uid_map", "gid_map")]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        if os.read(reader, 1):
            for path, lines in maps:
                Path(path).write_text(lines, encoding="ascii")
            os._exit(0)
        os._exit(1)
    os.close(reader)
    try:
        yield
        os.write(writer, b"1")
    finally:
        os.close(writer)
        status = os.waitpid(child, 0)[1]
    if status:
        raise PermissionError(1, "the user namespace's ids could not be mapped")


def _identity(name: str) -> str:
    """The ids of this user namespace, mapped onto themselves."""
    lines = (line.split() for line in Path("/proc/self", name).read_text(encoding="ascii").splitlines())
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in lines)


def _outlive(child: int) -> NoReturn:
    """Hand the server's end on to the process that started it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.waitpid(child, 0)
    os._exit(0)


def _serve(control: socket.socket, shared: keeper.Shared) -> NoReturn:
    for name in _PRELOADED:
        importlib.import_module(name)
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    gc.freeze()
    poll = select.poll()
    for sock in (control, shared.services):
        poll.register(sock, select.POLLIN)
    while True:
        if shared.services.fileno() in dict(poll.poll()):
            # They say nothing any more while they live. Without them no testbed is whole: let the caller start anew.
            os._exit(1)
        request, fds = receive_with_fds(control, _MOST_FDS)
        if request is None:
            os._exit(0)
        modules.preload(request.preload)
        _fork_keeper(request, fds, shared, own_pids, control)


def _start_services(control: socket.socket) -> keeper.Shared | None:
    """Start the process that loads the large libraries; None where it fails at the first, without which no link is."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        control.close()
        near.close()
        become(lambda: services.run(far))
    far.close()
    batches, _ = receive_with_fds(near, 1)
    return None if batches is None else keeper.Shared(batches, near)


def _fork_keeper(
    request: TestbedSpec, fds: list[int], shared: keeper.Shared, own_pids: int, control: socket.socket
) -> None:
    ends = keeper.Ends.from_fds(fds)
    try:
        kernel.unshare(kernel.CLONE_NEWPID)
        try:
            if os.fork() == 0:
                control.close()
                os.close(own_pids)
                become(lambda: keeper.run(request, ends, shared))
        finally:
            # Or the next testbed could have no PID namespace of its own.
            kernel.setns(own_pids, kernel.CLONE_NEWPID)
    except OSError as error:
        ends.events.send(pickle.dumps(readiness.explain(error)))
    ends.close()
