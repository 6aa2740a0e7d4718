"""The process that acts for the caller inside one node."""

import contextlib
import os
import socket
from typing import Any

from lab.testbed.netns import kernel, priority, sysctl
from lab.testbed.netns.commands import Commands
from lab.testbed.netns.events import EventSender
from lab.testbed.netns.loop import Loop
from lab.testbed.netns.observing import Observing
from lab.testbed.netns.rpc import serve_in
from lab.testbed.netns.services import Services


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


def run(
    node: str,
    namespace: int,
    calls: socket.socket,
    events: socket.socket,
    services: Services,
) -> None:
    """Be the node's agent until the caller closes its end.

    Args:
        node: Its name, which becomes its host name too.
        namespace: Descriptor of its network namespace.
        calls: Where requests come from.
        events: Where events go to.
        services: Starts what runs beside the agent.
    """
    kernel.setns(namespace, kernel.CLONE_NEWNET)
    os.close(namespace)
    kernel.unshare(kernel.CLONE_NEWUTS)
    kernel.set_hostname(node)
    kernel.name_process(f"lab-{node}")
    priority.keep()
    loop = Loop()
    commands = Commands(loop, EventSender(loop, events), node)
    serve_in(loop, NodeService(commands, Sysctls(), Observing(loop, node), services), calls)
    loop.run()
