"""What runs in a process of its own in a node, and how it is called: the firewall, the capture and the sink."""

import contextlib
import importlib
import pickle
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lab.core.fault import Fault, Matched
from lab.testbed.agent.loop import Loop
from lab.testbed.agent.rpc import serve, serve_in
from lab.testbed.translation import Translation

FIREWALL: Final = "firewall"
CAPTURE: Final = "capture"
SINK: Final = "sink"


@dataclass(frozen=True, slots=True)
class Premises:
    """What a service needs to know of the node that it is started in."""

    firewall: str
    """Which implementation owns the rules: iptables, nftables or auto."""

    left: str
    """The interface towards the client."""

    right: str
    """The interface towards the server; with an uplink the one that leads out."""

    sides: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What to capture in place of those two, as ``lab.testbed.capture.Capture.of`` takes it."""


def _host_firewall(premises: Premises, channel: socket.socket) -> None:
    # Nothing but this blocking read lies before a cut.
    serve(FirewallService(_made("lab.testbed.firewall", "open_firewall", premises.firewall)), channel)


def _host_capture(premises: Premises, channel: socket.socket) -> None:
    loop = Loop()
    capture = _made("lab.testbed.capture", "open_capture", premises.left, premises.right, premises.sides)
    serve_in(loop, CaptureService(loop, capture), channel)
    loop.run()


def _host_sink(premises: Premises, channel: socket.socket) -> None:  # noqa: ARG001 - every service is started so
    loop = Loop()
    with contextlib.closing(SinkService(loop)) as sink:
        serve_in(loop, sink, channel)
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

    def forget(self, packed: bytes) -> None:
        """As ``Router.forget``."""
        self._firewall.forget(self._fault(packed))
        del self._faults[packed]

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

    def start(self, folder: Path, filter_expression: str | None, ring_bytes: int, limit_bytes: int = 0) -> None:
        """Begin; when this returns, packets are being caught."""
        self._capture.start(folder, filter_expression, ring_bytes, limit_bytes)
        for fd in self._capture.filenos:
            self._loop.add_reader(fd, self._on_readable)

    def flush(self) -> object:
        """Write what was caught until now, and go on."""
        return self._capture.flush()

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


class SinkService:
    """A sink and the capture of its device.

    Args:
        loop: Of the sink's process.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sink: Any = None
        self._capture: CaptureService | None = None

    def open(self, folder: Path | None) -> None:
        """Make the sink, and capture what falls into it where there is a folder; idempotent."""
        if self._sink is not None:
            return
        sink = importlib.import_module("lab.testbed.sink")
        self._sink = sink.Sink()
        if folder is not None:
            capture = importlib.import_module("lab.testbed.capture").Capture
            self._capture = CaptureService(self._loop, capture.of({SINK: (sink.DEVICE, sink.DESCRIPTION)}))
            self._capture.start(folder, None, 0)

    def stop(self) -> object:
        """Drain and close the capture and summarise it, None where there is none; the sink stays."""
        return None if self._capture is None else self._capture.stop()

    def close(self) -> None:
        """Remove the sink; idempotent."""
        if self._sink is not None:
            self._sink.close()


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
    SINK: _host_sink,
}
"""A new service is a line here, and a proxy for callers."""


def main(argv: Sequence[str]) -> None:
    """Be a service of the namespace that this process is in, until the caller closes its end.

    Args:
        argv: The service's name, the descriptor of its channel, and the fields of ``Premises``.
    """
    name, descriptor, firewall, left, right = argv
    HOSTED[name](Premises(firewall, left, right), socket.socket(fileno=int(descriptor)))


if __name__ == "__main__":
    main(sys.argv[1:])
