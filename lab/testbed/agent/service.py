"""The process that acts for the caller inside one node."""

import contextlib
import socket
from typing import Any

from lab.testbed.agent import kernel, priority, sysctl
from lab.testbed.agent.addressing import Addressing
from lab.testbed.agent.commands import Commands
from lab.testbed.agent.events import EventSender
from lab.testbed.agent.loop import Loop
from lab.testbed.agent.observing import Observing
from lab.testbed.agent.rpc import serve_in


class NodeService:
    """All that a node's agent answers: the public methods of its parts.

    Args:
        parts: Objects whose public methods are offered; the first that has a name wins.
    """

    def __init__(self, *parts: object) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        for part in self._parts:
            with contextlib.suppress(AttributeError):
                return getattr(part, name)
        raise AttributeError(f"A node has no {name}.")


class Sysctls:
    """Sysctls of the node."""

    def read_sysctl(self, name: str) -> str:
        """As ``sysctl.read``."""
        return sysctl.read(name)

    def write_sysctl(self, name: str, value: str) -> None:
        """As ``sysctl.write``."""
        sysctl.write(name, value)


def serve_node(node: str, calls: socket.socket, events: socket.socket, services: object) -> None:
    """Be the agent of the node that this process is in, until the caller closes its end.

    Args:
        node: Its name.
        calls: Where requests come from.
        events: Where events go to.
        services: Starts what runs beside the agent: has ``open_service``.
    """
    kernel.name_process(f"lab-{node}")
    priority.keep()
    loop = Loop()
    commands = Commands(loop, EventSender(loop, events), node)
    serve_in(loop, NodeService(commands, Sysctls(), Addressing(), Observing(loop, node), services), calls)
    loop.run()
