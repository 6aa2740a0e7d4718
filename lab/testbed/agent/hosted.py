"""What runs in a process of its own in a node, and how it is called: the firewall and the capture."""

import importlib
import pickle
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.core.fault import Fault, Matched
from lab.core.flow import FourTuple
from lab.testbed.agent.loop import Loop
from lab.testbed.agent.rpc import serve, serve_in
from lab.testbed.translation import Translation

FIREWALL: Final = "firewall"
CAPTURE: Final = "capture"


@dataclass(frozen=True, slots=True)
class Premises:
    """What a service needs to know of the node that it is started in."""

    firewall: str
    """Which implementation owns the rules: iptables, nftables or auto."""

    left: str
    """The interface towards the client."""

    right: str
    """The interface towards the server; with an uplink the one that leads out."""


def _host_firewall(premises: Premises, channel: socket.socket) -> None:
    # Nothing but this blocking read lies before a cut.
    serve(FirewallService(_made("lab.testbed.firewall", "open_firewall", premises.firewall)), channel)


def _host_capture(premises: Premises, channel: socket.socket) -> None:
    loop = Loop()
    capture = _made("lab.testbed.capture", "Capture", premises.left, premises.right)
    serve_in(loop, CaptureService(loop, capture), channel)
    loop.run()


class FirewallService:
    """A firewall whose faults arrive packed, since taking one apart costs more than the rest of the call.

    Args:
        firewall: A ``lab.testbed.firewall.Firewall``.
    """

    def __init__(self, firewall: Any) -> None:
        self._firewall = firewall
        self._faults: dict[bytes, Fault] = {}
        self._translation: Translation | None = None

    def name(self) -> str:
        """Which implementation it is."""
        return str(self._firewall.name)

    def prepare(self, packed: bytes) -> None:
        """As ``Router.prepare``."""
        self._firewall.prepare(self._fault(packed))

    def cut(self, packed: bytes) -> tuple[float, float]:
        """As ``Router.cut``; the fields of the receipt."""
        receipt = self._firewall.cut(self._fault(packed))
        return receipt.began_at, receipt.done_at

    def heal(self, packed: bytes) -> tuple[float, float]:
        """As ``Router.heal``; the fields of the receipt."""
        receipt = self._firewall.heal(self._fault(packed))
        return receipt.began_at, receipt.done_at

    def matched(self, packed: bytes) -> Matched:
        """As ``Router.matched``."""
        matched: Matched = self._firewall.matched(self._fault(packed))
        return matched

    def translate(self, interface: str, addresses: Sequence[str]) -> None:
        """As ``open_translation``; it stays as long as the namespace."""
        from lab.testbed.translation import open_translation

        self._translation = open_translation(interface, addresses)

    def translations(self) -> dict[FourTuple, FourTuple]:
        """As ``Router.translations``."""
        from lab.testbed.conntrack import translations

        return {} if self._translation is None else translations()

    def _fault(self, packed: bytes) -> Fault:
        fault = self._faults.get(packed)
        if fault is None:
            fault = self._faults[packed] = unpack(packed)
        return fault


def pack(fault: Fault) -> bytes:
    """A fault as ``FirewallService`` takes it."""
    return pickle.dumps(fault, pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> Fault:
    """The fault that was packed."""
    fault: Fault = pickle.loads(packed)  # noqa: S301 - from the calling process, as rpc's docstring says
    return fault


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


HOSTED: Final[dict[str, Callable[[Premises, socket.socket], None]]] = {
    FIREWALL: _host_firewall,
    CAPTURE: _host_capture,
}
"""A new service is a line here, and a proxy for callers."""
