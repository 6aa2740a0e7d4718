"""The agent's program in a container: reports to the caller, arranges its node, then serves.

The container ends when the caller does: the calls' socket is the agent's reason to live, and the agent is the
container's first process.
"""

import os
import pickle
import socket
import sys
from pathlib import Path

from lab.core.errors import LabError
from lab.testbed.agent import modules, priority
from lab.testbed.agent.hosted import Premises
from lab.testbed.agent.rpc import receive_with_fds, send_with_fds
from lab.testbed.agent.service import serve_node
from lab.testbed.docker.inner import roads
from lab.testbed.docker.inner.seat import FOLDER, READY, SOCKET, Hello, Nic, Seat
from lab.testbed.docker.inner.services import ForkedServices

_GREETING_TIMEOUT_S = 60.0
_ENDS = 2


def main(argv: list[str]) -> None:
    """Be the agent of the node that this container holds.

    Args:
        argv: The node's name, and for each network that it will be on its families: 46, 4 or 6.
    """
    node, *networks = argv
    priority.rise()
    nics = roads.await_nics(networks)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
        caller.settimeout(_GREETING_TIMEOUT_S)
        caller.connect(str(Path(FOLDER, SOCKET)))
        send_with_fds(caller, Hello(node, nics, dict(os.environ)), [])
        seat, fds = receive_with_fds(caller, _ENDS)
        if seat is None:
            return
        services = _take(seat, nics, caller)
    calls, events = (socket.socket(fileno=fd) for fd in fds)
    serve_node(node, calls, events, services)


def _take(seat: Seat, nics: tuple[Nic, ...], caller: socket.socket) -> ForkedServices:
    """Arrange the node as the seat says, and tell the caller how that went."""
    try:
        roads.arrange(seat, nics)
        modules.preload(seat.preload)
        services = ForkedServices(Premises(seat.firewall, seat.left, seat.right), seat.at_once)
    except Exception as error:
        answer = error if isinstance(error, LabError) else RuntimeError(f"{type(error).__name__}: {error}")
        caller.send(pickle.dumps(answer))
        raise
    caller.send(pickle.dumps(READY))
    return services


if __name__ == "__main__":
    main(sys.argv[1:])
