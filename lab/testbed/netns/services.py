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
from pathlib import Path
from typing import Any, Final, NoReturn

from lab.testbed.netns import kernel, links
from lab.testbed.netns.layout import LEFT, RIGHT
from lab.testbed.netns.loop import Loop
from lab.testbed.netns.rpc import Attached, receive_with_fds, send_with_fds, serve, serve_in
from lab.testbed.ports import TestbedSpec

FIREWALL: Final = "firewall"
CAPTURE: Final = "capture"

_LIBRARIES: Final = ("iptc", "scapy.arch.linux", "scapy.supersocket", "lab.testbed.firewall", "lab.testbed.capture")

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


class Services:
    """What a node's agent answers about services.

    Args:
        spec: What the testbed was asked for.
        requests: To the process that ``run`` is.
    """

    def __init__(self, spec: TestbedSpec, requests: socket.socket) -> None:
        self._spec = spec
        self._requests = requests

    def open_service(self, name: str) -> Attached:
        """Have a service started in this node; the descriptor that comes with the answer leads to it."""
        near, far = socket.socketpair()
        namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _NAMESPACES]
        send_with_fds(self._requests, (name, self._spec), [far.fileno(), *namespaces])
        for fd in namespaces:
            os.close(fd)
        far.close()
        return Attached(None, fd=near.detach())


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
        _HOSTS[name](spec, channel)
        code = 0
    finally:
        os._exit(code)


def _host_firewall(spec: TestbedSpec, channel: socket.socket) -> None:
    # Nothing but this blocking read lies before a cut.
    serve(_made("lab.testbed.firewall", "open_firewall", spec.firewall), channel)


def _host_capture(_: TestbedSpec, channel: socket.socket) -> None:
    loop = Loop()
    serve_in(loop, CaptureService(loop, _made("lab.testbed.capture", "Capture", LEFT, RIGHT)), channel)
    loop.run()


_HOSTS: Final[dict[str, Callable[[TestbedSpec, socket.socket], None]]] = {
    FIREWALL: _host_firewall,
    CAPTURE: _host_capture,
}
"""A new service is a line here, and a proxy for callers."""


class CaptureService:
    """A capture whose rings are emptied by a loop.

    Args:
        loop: Of the capture's process.
        capture: A ``lab.testbed.capture.Capture``.
    """

    def __init__(self, loop: Loop, capture: Any) -> None:
        self._loop = loop
        self._capture = capture

    def start(self, folder: Path, filter_expression: str | None, ring_bytes: int) -> None:
        """Begin; when this returns, packets are being caught."""
        self._capture.start(folder, filter_expression, ring_bytes)
        for fd in self._capture.filenos:
            self._loop.add_reader(fd, self._on_readable)

    def stop(self) -> object:
        """Drain, close and summarise."""
        self._forget()
        return self._capture.stop()

    def _on_readable(self) -> None:
        self._capture.on_readable()
        if self._capture.failure is not None:
            # Nobody empties the rings any more; ``stop`` tells why.
            self._forget()

    def _forget(self) -> None:
        for fd in self._capture.filenos:
            self._loop.remove_reader(fd)


class _Broken:
    """Stands in for a service that could not be made: every call raises the reason."""

    def __init__(self, reason: Exception) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._reason


def _made(module: str, factory: str, *args: object) -> object:
    """What the factory makes, or a stand-in that raises the reason at every call."""
    try:
        return getattr(importlib.import_module(module), factory)(*args)
    except Exception as error:  # noqa: BLE001 - the first caller shall see it
        return _Broken(error)
