"""A second warm process, for what needs large libraries: it records link requests, and forks firewalls and captures.

Agents and keepers are forked from the small fork server, since forking a process that has python-iptables and scapy
loaded takes 4 ms and its end as long, against 0.5 ms. This one forks only the services that are used, into the
namespaces of the testbed that asks.
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
import warnings
from typing import Final, NoReturn

from lab.core.errors import InvalidRun
from lab.testbed.agent import hosted, kernel, priority
from lab.testbed.agent.child import become
from lab.testbed.agent.hosted import Premises
from lab.testbed.agent.rpc import Attached, receive_with_fds, send_with_fds
from lab.testbed.netns import links

_LIBRARIES: Final = ("iptc", "scapy.arch.linux", "scapy.supersocket", "lab.testbed.firewall", "lab.testbed.capture")

_ENTERED: Final = {"mnt": kernel.CLONE_NEWNS, "net": kernel.CLONE_NEWNET}
"""Namespaces of the node that a service enters; it is born into the PID namespace."""

_NAMESPACES: Final = ("pid", *_ENTERED)

_FIRST_FD = 3
"""Behind the standard ones."""


def run(requests: socket.socket) -> NoReturn:
    """Send the recorded links, load the libraries, then start services until the fork server ends."""
    kernel.name_process("lab-services")
    priority.fall()
    # The kernel reaps the services.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    send_with_fds(requests, links.record(), [])
    # python-iptables looks for old libraries too, and where the linker does not know one, ctypes asks a compiler on the
    # PATH: that takes time, and a kill in that moment leaves the compiler's files in /tmp. Nothing else here uses PATH.
    os.environ["PATH"] = os.devnull
    for name in _LIBRARIES:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    # Children shall share what is loaded, not copy it at their first collection.
    gc.freeze()
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    while True:
        request, fds = receive_with_fds(requests, 1 + len(_NAMESPACES))
        if request is None:
            os._exit(0)
        name, premises = request
        _start(name, premises, fds, own_pids)
        for fd in fds:
            os.close(fd)


class Services:
    """What a node's agent answers about services.

    Args:
        premises: What the services need to know.
        requests: To the process that ``run`` is.
    """

    def __init__(self, premises: Premises, requests: socket.socket) -> None:
        self._premises = premises
        self._requests = requests

    def open_service(self, name: str) -> Attached:
        """Have a service started in this node; the descriptor that comes with the answer leads to it."""
        near, far = socket.socketpair()
        namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _NAMESPACES]
        try:
            send_with_fds(self._requests, (name, self._premises), [far.fileno(), *namespaces])
        except OSError as error:
            near.close()
            raise InvalidRun(f"The process that starts the {name} ended unexpectedly.") from error
        finally:
            for fd in namespaces:
                os.close(fd)
            far.close()
        return Attached(None, fd=near.detach())


def _start(name: str, premises: Premises, fds: list[int], own_pids: int) -> None:
    """Fork a service into a testbed; what goes wrong, its caller hears as the end of the channel."""
    sock, pids, *namespaces = fds
    with contextlib.suppress(OSError):
        kernel.setns(pids, kernel.CLONE_NEWPID)
        if os.fork() == 0:
            become(lambda: _run(name, premises, sock, namespaces))
    kernel.setns(own_pids, kernel.CLONE_NEWPID)


def _run(name: str, premises: Premises, sock: int, namespaces: list[int]) -> None:
    kernel.name_process(f"lab-{name}")
    for kind, fd in zip(_ENTERED.values(), namespaces, strict=True):
        kernel.setns(fd, kind)
    os.closerange(_FIRST_FD, sock)
    os.closerange(sock + 1, os.sysconf("SC_OPEN_MAX"))
    hosted.HOSTED[name](premises, socket.socket(fileno=sock))
