"""The sockets between a caller and the agents of one testbed: a channel for calls to each, one for all their events."""

import pickle
import socket
import threading
from collections.abc import Iterable, Mapping

from lab.testbed.agent.nodes import AgentNode
from lab.testbed.agent.rpc import Channel

_EVENT_BYTES = 1 << 17


class Wires:
    """Both ends of every socket, until the far ends are handed over.

    Args:
        names: The nodes'.

    Raises:
        OSError: this process may open no more.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.events, self.far_events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """The caller's end of the events, and the end that all agents share."""

        pairs = {name: socket.socketpair() for name in names}
        self.channels = {name: Channel(near, f"The {name}'s agent") for name, (near, _) in pairs.items()}
        """To each agent."""

        self.far_calls = {name: far for name, (_, far) in pairs.items()}
        """The agents' ends of those."""

        self._nodes: Mapping[str, AgentNode] = {}
        self._reader = threading.Thread(target=self._read_events, name="lab-events", daemon=True)

    def release(self) -> None:
        """Close the far ends here: the agents hold the only copies then, so that their end is seen. Idempotent."""
        for sock in (self.far_events, *self.far_calls.values()):
            sock.close()

    def connect(self, nodes: Mapping[str, AgentNode]) -> None:
        """Hand every event to its program from here on, by the testbed's one thread in the calling process."""
        self._nodes = nodes
        self._reader.start()

    def join(self) -> None:
        """Wait until the last agent has closed its end; at once where none was ever connected."""
        if self._nodes:
            self._reader.join()

    def close(self) -> None:
        """Close the caller's ends."""
        self.release()
        for node in self._nodes.values():
            node.close()
        for channel in self.channels.values():
            channel.close()
        self.events.close()

    def let_go(self) -> None:
        """In a fork of the caller: close what would hide the caller's end from the agents."""
        for node in self._nodes.values():
            node.let_go()
        for channel in self.channels.values():
            channel.abandon()
        self.release()
        self.events.close()

    def _read_events(self) -> None:
        while packet := self.events.recv(_EVENT_BYTES):
            event = pickle.loads(packet)  # noqa: S301 - from our own agents
            process = self._nodes[event.node].process(event.program)
            if process is not None:
                process.handle(event)
        for node in self._nodes.values():
            for process in node.processes():
                process.abandon()
