"""A second warm process, for what needs large libraries: it records link requests, and forks firewalls and captures.

Agents and keepers are forked from the small fork server, since forking a process that has python-iptables and scapy
loaded takes 4 ms and its end as long, against 0.5 ms. This one forks only the services that are used, into the
namespaces of the testbed that asks.
"""

import contextlib
import gc
import importlib
import os
import socket
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

from lab.testbed.netns import kernel, links
from lab.testbed.netns.loop import Loop
from lab.testbed.netns.rpc import receive_with_fds, send_with_fds, serve
from lab.testbed.ports import TestbedSpec

FIREWALL: Final = "firewall"
CAPTURE: Final = "capture"

_FACTORIES: Final[dict[str, tuple[str, str, Callable[[TestbedSpec], tuple[Any, ...]]]]] = {
    FIREWALL: ("lab.testbed.firewall", "open_firewall", lambda spec: (spec.firewall,)),
    CAPTURE: ("lab.testbed.capture", "Capture", lambda _: ()),
}
"""Per service: module, factory, and the factory's arguments. A new service is a line here, and a proxy for callers."""

SERVICES: Final = tuple(_FACTORIES)

_LIBRARIES: Final = ("iptc", "scapy.arch.linux", "scapy.supersocket", *(entry[0] for entry in _FACTORIES.values()))

_NAMESPACES: Final = {"pid": kernel.CLONE_NEWPID, "mnt": kernel.CLONE_NEWNS, "net": kernel.CLONE_NEWNET}


def run(requests: socket.socket) -> NoReturn:
    """Send the recorded links, load the libraries, then start services until the fork server ends."""
    send_with_fds(requests, links.record(), [])
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
        name, spec = request
        _start(name, spec, fds, own_pids)
        for fd in fds:
            os.close(fd)


def start_on_demand(loop: Loop, name: str, spec: TestbedSpec, sock: socket.socket, requests: socket.socket) -> None:
    """Have a service started beside this agent when the first call to it comes.

    Args:
        loop: The agent's loop.
        name: One of ``SERVICES``.
        spec: What the testbed was asked for.
        sock: The service's end of the caller's channel; handed over.
        requests: To the process that ``run`` is.
    """

    def start() -> None:
        loop.remove_reader(sock.fileno())
        namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _NAMESPACES]
        send_with_fds(requests, (name, spec), [sock.fileno(), *namespaces])
        for fd in namespaces:
            os.close(fd)
        sock.close()

    loop.add_reader(sock.fileno(), start)


def _start(name: str, spec: TestbedSpec, fds: list[int], own_pids: int) -> None:
    """Fork a service into a testbed; what goes wrong, its caller hears as the end of the channel."""
    sock, *namespaces = fds
    entries = dict(zip(_NAMESPACES.items(), namespaces, strict=True))
    with contextlib.suppress(OSError):
        kernel.setns(namespaces[0], kernel.CLONE_NEWPID)
        if os.fork() == 0:
            _become(name, spec, sock, {kind: fd for (_, kind), fd in entries.items() if kind != kernel.CLONE_NEWPID})
    kernel.setns(own_pids, kernel.CLONE_NEWPID)


def _become(name: str, spec: TestbedSpec, sock: int, namespaces: dict[int, int]) -> NoReturn:
    code = 1
    try:
        for kind, fd in namespaces.items():
            kernel.setns(fd, kind)
        os.closerange(3, sock)
        os.closerange(sock + 1, os.sysconf("SC_OPEN_MAX"))
        channel = socket.socket(fileno=sock)
        serve(_make(name, spec), channel)
        code = 0
    finally:
        os._exit(code)


class _Broken:
    """Stands in for a service that could not be made: every call raises the reason."""

    def __init__(self, reason: Exception) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._reason


def _make(name: str, spec: TestbedSpec) -> object:
    module, factory, arguments = _FACTORIES[name]
    try:
        return getattr(importlib.import_module(module), factory)(*arguments(spec))
    except Exception as error:  # noqa: BLE001 - the first caller shall see it
        return _Broken(error)
