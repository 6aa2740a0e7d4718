"""The agent's program in a container that has joined a running one's network namespace.

It changes nothing there until it is told to, and puts everything back at its end: when the caller closes its end of the
calls, when the caller is killed, and when the engine stops the container. Its exit status 0 says that this was done; a
container that was killed has another one, and what it left is then for ``lab.testbed.docker.sidecar.cleaning``.
"""

import contextlib
import os
import pickle
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Final

from lab.core.errors import LabError
from lab.core.flow import Endpoint
from lab.testbed import sink
from lab.testbed.agent.hosted import SINK, Premises
from lab.testbed.agent.rpc import receive_with_fds, send_with_fds
from lab.testbed.agent.service import serve_node
from lab.testbed.docker.inner import roads
from lab.testbed.docker.inner.seat import FOLDER, READY, SOCKET, Hello, Seat
from lab.testbed.docker.inner.services import ForkedServices
from lab.testbed.names import CLIENT
from lab.testbed.restore import restore
from lab.testbed.sockets import SocketTable

NODE: Final = "attached"
"""What it calls itself when it reports."""

INTERFACE: Final = "interface"
"""The capture's side that is the container's own interface; the other one is the sink."""

_GREETING_TIMEOUT_S = 60.0
_ENDS = 2


class AttachedServices(ForkedServices):
    """What an attached agent answers beside a node's usual questions.

    Args:
        premises: As for ``ForkedServices``.
    """

    def __init__(self, premises: Premises) -> None:
        super().__init__(premises, ())
        self._sink: sink.Sink | None = None

    def claim(self, interface: str) -> None:
        """Make the sink, which says that this namespace is taken; a capture then is of it and of the interface.

        Raises:
            UsageError: it is taken already.
        """
        self._sink = sink.Sink()
        sides = {INTERFACE: (interface, "the container's own interface"), SINK: (sink.DEVICE, sink.DESCRIPTION)}
        self.premises = replace(self.premises, sides=sides)

    def restore(self) -> None:
        """Put everything back, if this one has changed anything; the namespace may be another attachment's."""
        if self._sink is not None:
            restore()

    def is_bound_to_device(self, local: Endpoint, remote: Endpoint) -> bool:
        """As ``SocketTable.is_bound_to_device``."""
        with SocketTable() as table:
            return table.is_bound_to_device(local, remote)


def main() -> None:
    """Serve until the caller ends, then restore the namespace."""
    # The first process of a container gets no signal that it has not asked for.
    signal.signal(signal.SIGTERM, _end)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
        caller.settimeout(_GREETING_TIMEOUT_S)
        caller.connect(str(Path(FOLDER, SOCKET)))
        send_with_fds(caller, Hello(NODE, roads.read_nics(), dict(os.environ)), [])
        seat, fds = receive_with_fds(caller, _ENDS)
        if seat is None:
            return
        services = _take(seat, caller)
    calls, events = (socket.socket(fileno=fd) for fd in fds)
    try:
        # A caller that was killed in the middle of a call resets the connection.
        with contextlib.suppress(ConnectionError):
            # Whichever end of a flow is in here is its client: an agent follows sockets by their local end.
            serve_node(CLIENT, calls, events, services)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        services.restore()


def _take(seat: Seat, caller: socket.socket) -> AttachedServices:
    try:
        services = AttachedServices(Premises(_firewall(seat.firewall), "", ""))
    except Exception as error:
        caller.send(pickle.dumps(error if isinstance(error, LabError) else RuntimeError(str(error))))
        raise
    caller.send(pickle.dumps(READY))
    return services


def _firewall(wanted: str) -> str:
    """The kernel's nftables where it has them: a table of the lab's own leaves nothing, a legacy one stays, empty."""
    if wanted != "auto":
        return wanted
    from lab.testbed import firewall_nftables

    return "nftables" if firewall_nftables.is_usable() else "iptables"


def _end(*_: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main()
