"""The nodes of a testbed, as the caller uses them."""

import itertools
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lab.core.errors import UsageError
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.socket import SocketOptions, SocketSample
from lab.testbed.agent.hosted import CAPTURE, FIREWALL, SINK, pack
from lab.testbed.agent.process import AgentProcess
from lab.testbed.agent.rpc import Channel, too_many_files
from lab.testbed.names import ROUTER, Addresses
from lab.testbed.ports import CaptureSummary, Counters, CutReceipt, PassingFlow, SocketTrack

_DRAIN_TIMEOUT_S = 120.0
"""How long a capture may take to write what it still holds."""


class Surroundings:
    """What a node's programs see of the world where they start: here, what the caller sees."""

    def environment(self, added: Mapping[str, str] | None) -> Mapping[str, str]:
        """A program's environment, given what its starter adds."""
        return {**os.environ, **(added or {})}

    def folder(self, wanted: Path | None) -> str:
        """Where a program starts, given where its starter wants it."""
        return str(wanted or Path.cwd())


class AgentNode:
    """Client or server; fulfils ``ports.Node``.

    Args:
        name: client, router or server.
        channel: To the node's agent.
        addresses: What the other nodes know it by.
        surroundings: What its programs see where they start; the caller's where None.
    """

    def __init__(
        self, name: str, channel: Channel, addresses: Addresses, surroundings: Surroundings | None = None
    ) -> None:
        self._name = name
        self._channel = channel
        self._addresses = addresses
        self._surroundings = surroundings or Surroundings()
        self._numbers = itertools.count(1)
        self._processes: dict[int, AgentProcess] = {}
        self._services: dict[str, Channel] = {}
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        """client, router or server."""
        return self._name

    @property
    def ipv4(self) -> str:
        """The address that the other nodes know it by."""
        return self._addresses.ipv4

    @property
    def ipv6(self) -> str:
        """The same for IPv6."""
        return self._addresses.ipv6

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> AgentProcess:
        """Start a command."""
        if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
            raise UsageError(
                f"A command is a list of words, not {argv!r}.", fix="split a shell string with shlex.split"
            )
        return self._start("spawn", argv, (list(argv),), env, cwd)

    def spawn_module(
        self, module: str, argv: Sequence[str] = (), *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> AgentProcess:
        """Start a Python module as ``python -m module`` would, without a new interpreter."""
        return self._start("spawn_module", ("python", "-m", module, *argv), (module, list(argv)), env, cwd)

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the namespace."""
        found: Sequence[SocketSample] = self._channel.call("sockets")
        return found

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket."""
        options: SocketOptions | None = self._channel.call("socket_options", local_port, remote_port)
        return options

    def nudge(self, source: Endpoint, destination: Endpoint) -> None:
        """Send one old acknowledgment past the node's own TCP."""
        self._channel.call("nudge", source, destination)

    def watch(self, flow: FourTuple) -> None:
        """Begin to sample this node's socket of the flow."""
        self._channel.call("watch", flow)

    def track(self, flow: FourTuple) -> SocketTrack:
        """What ``watch`` has seen so far."""
        track: SocketTrack = self._channel.call("track", flow)
        return track

    def counters(self) -> Counters:
        """All counters of the namespace now."""
        counters: Counters = self._channel.call("counters")
        return counters

    def read_sysctl(self, name: str) -> str:
        """Value of a sysctl in the namespace."""
        return str(self._channel.call("read_sysctl", name))

    def write_sysctl(self, name: str, value: str) -> None:
        """Set a sysctl in the namespace."""
        self._channel.call("write_sysctl", name, value)

    def ask(self, method: str, *args: object) -> object:
        """What the agent answers that this kind of node alone is asked."""
        return self._channel.call(method, *args)

    def now_at(self, addresses: Addresses) -> None:
        """Take note that the other nodes know it by others from now on."""
        self._addresses = addresses

    def process(self, number: int) -> AgentProcess | None:
        """The program of a number."""
        return self._processes.get(number)

    def processes(self) -> Sequence[AgentProcess]:
        """Every program started so far."""
        return list(self._processes.values())

    def service(self, name: str) -> Channel:
        """The channel to a service of this node, which is started at its first use."""
        channel = self._services.get(name)
        if channel is not None:
            return channel
        with self._opening:
            if name not in self._services:
                fd = self._channel.call_attached("open_service", name).fd
                if fd < 0:
                    raise too_many_files()
                self._services[name] = Channel(socket.socket(fileno=fd), f"The {self._name}'s {name}")
            return self._services[name]

    def close(self) -> None:
        """End the channels."""
        for channel in (self._channel, *self._services.values()):
            channel.close()

    def let_go(self) -> None:
        """In a fork of the caller: close without a sign to the testbed."""
        for channel in (self._channel, *self._services.values()):
            channel.abandon()

    def _start(
        self,
        method: str,
        argv: Sequence[str],
        command: tuple[object, ...],
        env: Mapping[str, str] | None,
        cwd: Path | None,
    ) -> AgentProcess:
        number = next(self._numbers)
        process = AgentProcess(self._channel, number, argv)
        # Known before it runs: its first line may overtake the answer.
        self._processes[number] = process
        environment, folder = self._surroundings.environment(env), self._surroundings.folder(cwd)
        try:
            at, pid, _ = self._channel.call_attached(method, number, *command, environment, folder)
        except BaseException:
            del self._processes[number]
            raise
        process.started(at, pid)
        return process


class AgentRouter(AgentNode):
    """The node in the middle; fulfils ``ports.Router``.

    Args:
        channel: To the node's agent.
        addresses: What the other nodes know it by.
        client: Where the rules go of a hole in the client's namespace.
        server: The same for the server's.
        surroundings: As for ``AgentNode``.
    """

    def __init__(
        self,
        channel: Channel,
        addresses: Addresses,
        client: AgentNode,
        server: AgentNode,
        surroundings: Surroundings | None = None,
    ) -> None:
        super().__init__(ROUTER, channel, addresses, surroundings)
        self._senders = {Direction.FORWARD: client, Direction.RETURN: server}
        self._known: dict[Fault, list[tuple[Channel, bytes]]] = {}
        self._sinks: list[Channel] = []
        self._folder: Path | None = None
        """Of the capture that runs."""

    @property
    def firewall(self) -> str:
        """Which implementation owns the rules: iptables or nftables."""
        return str(self.service(FIREWALL).call("name"))

    def prepare(self, fault: Fault) -> None:
        """Build the fault's rules without putting them in force."""
        for firewall, part in self._parts(fault):
            firewall.call("prepare", part)

    def cut(self, fault: Fault) -> CutReceipt:
        """Put the fault in force."""
        return self._enforce("cut", fault)

    def heal(self, fault: Fault) -> CutReceipt:
        """Take the fault back."""
        return self._enforce("heal", fault)

    def matched(self, fault: Fault) -> Matched:
        """Packets that the fault's rules dropped."""
        counts = [firewall.call("matched", part) for firewall, part in self._parts(fault)]
        return Matched(sum(count.forward for count in counts), sum(count.return_ for count in counts))

    def translate(self, interface: str, addresses: Sequence[str]) -> None:
        """Give what leaves by an interface the router's own address there; see ``open_translation``."""
        self.service(FIREWALL).call("translate", interface, list(addresses))

    def forget(self, fault: Fault) -> None:
        """Remove the rules of a fault that is not in force."""
        for firewall, part in self._parts(fault):
            firewall.call("forget", part)
        del self._known[fault]

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass."""
        # Connection tracking begins with the firewall.
        self.service(FIREWALL)
        flows: Sequence[PassingFlow] = self._channel.call("flows")
        return flows

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """Capture both interfaces."""
        self._folder = folder.absolute()
        self.service(CAPTURE).call("start", self._folder, filter_expression, ring_bytes, limit_bytes)

    def flush_capture(self) -> CaptureSummary:
        """Write what was caught until now, and go on."""
        summary: CaptureSummary = self.service(CAPTURE).call("flush", timeout_s=_DRAIN_TIMEOUT_S)
        return summary

    def stop_capture(self) -> CaptureSummary:
        """Drain, close and summarise."""
        summary: CaptureSummary = self.service(CAPTURE).call("stop", timeout_s=_DRAIN_TIMEOUT_S)
        for sink in self._sinks:
            part: CaptureSummary | None = sink.call("stop", timeout_s=_DRAIN_TIMEOUT_S)
            summary = summary if part is None else _joined(summary, part)
        return summary

    def _enforce(self, method: str, fault: Fault) -> CutReceipt:
        receipts = [firewall.call(method, part) for firewall, part in self._parts(fault)]
        return CutReceipt(min(began for began, _ in receipts), max(done for _, done in receipts))

    def _parts(self, fault: Fault) -> list[tuple[Channel, bytes]]:
        """Whose rules make the fault: the router's, those of one end, or those of each sender."""
        parts = self._known.get(fault)
        if parts is None:
            if fault.placement.sunk is not None:
                self._open_sink(self._senders[fault.placement.sunk])
            parts = [(node.service(FIREWALL), pack(part)) for node, part in self._split(fault)]
            self._known[fault] = parts
        return parts

    def _split(self, fault: Fault) -> list[tuple[AgentNode, Fault]]:
        if fault.placement is Placement.ROUTER:
            return [(self, fault)]
        if fault.placement.sunk is not None:
            return [(self._senders[fault.placement.sunk], fault)]
        return [(self._senders[one], replace(fault, direction=Cut(one.value))) for one in fault.direction.directions]

    def _open_sink(self, node: AgentNode) -> None:
        sink = node.service(SINK)
        sink.call("open", self._folder)
        if sink not in self._sinks:
            self._sinks.append(sink)


def _joined(router: CaptureSummary, sink: CaptureSummary) -> CaptureSummary:
    """One summary of both; the sink's capture began when there was a sink, before which nothing could fall into it."""
    return replace(
        router,
        files={**router.files, **sink.files},
        packets={**router.packets, **sink.packets},
        dropped={**router.dropped, **sink.dropped},
    )
