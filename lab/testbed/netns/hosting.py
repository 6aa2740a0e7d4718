"""Which services run in a process of their own in the router's namespace, and what makes them.

Each has a socket that the caller holds from the start; the process is forked when the first request arrives, so an
unused service costs nothing, and no call to one ever waits behind another.
"""

import importlib
import socket
from collections.abc import Callable
from typing import Final

from lab.testbed.netns import modules
from lab.testbed.netns.loop import Loop
from lab.testbed.netns.rpc import serve
from lab.testbed.ports import TestbedSpec

FIREWALL: Final = "firewall"
CAPTURE: Final = "capture"

_FACTORIES: Final[dict[str, tuple[str, str, Callable[[TestbedSpec], tuple[str, ...]]]]] = {
    FIREWALL: ("lab.testbed.firewall", "open_firewall", lambda spec: (spec.firewall,)),
    CAPTURE: ("lab.testbed.capture", "Capture", lambda _: ()),
}
"""Per service: module, factory, and the factory's arguments."""

HOSTED: Final = tuple(_FACTORIES)

PRELOADED: Final = ("pyroute2", "iptc", "scapy.arch.linux", "scapy.supersocket", *(f[0] for f in _FACTORIES.values()))
"""What the fork server imports while it is idle, so that services start at once."""


def host(loop: Loop, name: str, sock: socket.socket, spec: TestbedSpec) -> None:
    """Start a service in a child of this process when the first request comes.

    Args:
        loop: Loop of the agent in whose namespaces the service shall run.
        name: One of ``HOSTED``.
        sock: The service's end of the caller's channel; handed over to the child.
        spec: What the testbed was asked for.
    """

    def start() -> None:
        loop.remove_reader(sock.fileno())
        modules.fork_bare(sock.fileno(), lambda: serve(_make(name, spec), sock))
        sock.close()

    loop.add_reader(sock.fileno(), start)


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
