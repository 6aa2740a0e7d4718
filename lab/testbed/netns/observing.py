"""Sockets and counters of a node, read by its agent."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from lab.core.errors import Unsupported
from lab.core.socket import SocketSample
from lab.testbed.netns.loop import Loop


class Observing:
    """What the node's kernel knows of its sockets.

    Args:
        loop: The agent's loop, which wakes the watchers.
        node: The node's name.
    """

    def __init__(self, loop: Loop, node: str) -> None:
        self._loop = loop
        self._node = node

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the namespace."""
        samples: Sequence[SocketSample] = _find("sockets", "list_sockets")()
        return samples

    def counters(self) -> Mapping[str, int]:
        """All counters of the namespace."""
        counters: Mapping[str, int] = _find("counters", "read_counters")()
        return counters


def _find(module: str, name: str) -> Any:
    """A function of the testbed's instruments, loaded when first used."""
    try:
        return getattr(importlib.import_module(f"lab.testbed.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"The testbed has no {module}.{name}.") from error
