"""Sockets and counters of a node, read by its agent."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from lab.core.errors import Unsupported, UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketOptions, SocketSample
from lab.testbed.netns.layout import CLIENT, SERVER
from lab.testbed.netns.loop import Loop
from lab.testbed.nudge import nudge
from lab.testbed.ports import SocketTrack

_RETRY_S = 0.1
"""When to look again after the kernel refused an answer."""


class Observing:
    """What the node's kernel knows of its sockets.

    Args:
        loop: The agent's loop, which wakes the watchers.
        node: The node's name.
    """

    def __init__(self, loop: Loop, node: str) -> None:
        self._loop = loop
        self._node = node
        self._watchers: dict[FourTuple, Any] = {}
        self._table: Any = None

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the namespace."""
        samples: Sequence[SocketSample] = _find("sockets", "list_sockets")()
        return samples

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket."""
        options: SocketOptions | None = _find("socket_options", "socket_options")(local_port, remote_port)
        return options

    def nudge(self, source: Endpoint, destination: Endpoint) -> None:
        """Send one old acknowledgment past the node's own TCP."""
        nudge(source, destination)

    def counters(self) -> Mapping[str, int]:
        """All counters of the namespace."""
        counters: Mapping[str, int] = _find("counters", "read_counters")()
        return counters

    def watch(self, flow: FourTuple) -> None:
        """Sample this node's socket of the flow from now on; idempotent.

        Raises:
            UsageError: the node is no end of a flow.
        """
        if flow in self._watchers:
            return
        if self._node not in (CLIENT, SERVER):
            raise UsageError(f"The {self._node} is no end of {flow}.", fix="watch it in the client or the server")
        local, remote = (flow.client, flow.server) if self._node == CLIENT else (flow.server, flow.client)
        watcher = _find("watcher", "SocketWatcher")(self._sockets(), local, remote)
        self._watchers[flow] = watcher
        self._look(watcher)

    def track(self, flow: FourTuple) -> SocketTrack:
        """What the watch has seen so far.

        Raises:
            UsageError: the flow is not watched here.
        """
        if flow not in self._watchers:
            raise UsageError(f"{flow} is not watched in the {self._node}.", fix="call watch before the cut")
        track: SocketTrack = self._watchers[flow].track()
        return track

    def _look(self, watcher: Any) -> None:
        try:
            watcher.on_wake(self._loop.time())
            due = watcher.wake_at()
        except OSError:
            due = self._loop.time() + _RETRY_S
        if due is not None:
            self._loop.call_at(due, lambda: self._look(watcher))

    def _sockets(self) -> Any:
        if self._table is None:
            self._table = _find("sockets", "SocketTable")()
        return self._table


def _find(module: str, name: str) -> Any:
    """One of the testbed's instruments, loaded when first used."""
    try:
        return getattr(importlib.import_module(f"lab.testbed.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"The testbed has no {module}.{name}.") from error
