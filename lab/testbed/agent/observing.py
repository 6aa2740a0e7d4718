"""Sockets and counters of a node, read by its agent."""

from collections.abc import Mapping, Sequence

from lab.core.errors import UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketOptions, SocketSample
from lab.testbed.agent.loop import Loop
from lab.testbed.conntrack import date_flows, passing_flows
from lab.testbed.counters import read_counters
from lab.testbed.names import CLIENT, SERVER
from lab.testbed.nudge import nudge
from lab.testbed.ports import PassingFlow, SocketTrack
from lab.testbed.socket_options import socket_options
from lab.testbed.sockets import SocketTable, list_sockets
from lab.testbed.watcher import SocketWatcher

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
        self._watchers: dict[FourTuple, SocketWatcher] = {}
        self._table: SocketTable | None = None
        self._dated = False

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the namespace."""
        return list_sockets()

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket."""
        return socket_options(local_port, remote_port)

    def nudge(self, source: Endpoint, destination: Endpoint) -> None:
        """Send one old acknowledgment past the node's own TCP."""
        nudge(source, destination)

    def counters(self) -> Mapping[str, int]:
        """All counters of the namespace."""
        return read_counters()

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass this node; they are dated from the first call on."""
        if not self._dated:
            self._dated = True
            date_flows()
        return passing_flows()

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
        watcher = SocketWatcher(self._sockets(), local, remote)
        self._watchers[flow] = watcher
        self._look(watcher)

    def track(self, flow: FourTuple) -> SocketTrack:
        """What the watch has seen so far.

        Raises:
            UsageError: the flow is not watched here.
        """
        if flow not in self._watchers:
            raise UsageError(f"{flow} is not watched in the {self._node}.", fix="call watch before the cut")
        return self._watchers[flow].track()

    def _look(self, watcher: SocketWatcher) -> None:
        try:
            watcher.on_wake(self._loop.time())
            due = watcher.wake_at()
        except OSError:
            due = self._loop.time() + _RETRY_S
        if due is not None:
            self._loop.call_at(due, lambda: self._look(watcher))

    def _sockets(self) -> SocketTable:
        if self._table is None:
            self._table = SocketTable()
        return self._table
