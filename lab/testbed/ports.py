"""What a backend offers: the protocols that the embedded and the container testbed both fulfil.

Calls are blocking and may come from any thread; every wait takes a deadline. Instants are CLOCK_MONOTONIC seconds
of the kernel that the nodes share with the caller.
"""

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from lab.core.fault import Fault, Matched
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import SocketOptions, SocketSample
from lab.core.timeline import ClockPair
from lab.core.uplink import Uplink

Counters = Mapping[str, int]
"""Kernel counters of one namespace, named as ``nstat`` names them: ``TcpRetransSegs``, ``TcpExtTCPTimeouts``."""


@dataclass(frozen=True, slots=True)
class TestbedSpec:
    """What to bring up."""

    __test__ = False
    """Not a test class, whatever pytest makes of the name."""

    ipv6: bool = False
    """Which family the names ``client``, ``router`` and ``server`` resolve to; both are always configured."""

    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per node (client, router, server): sysctl name with dots to value, set before any program starts."""

    offloads: bool = False
    """Leave TSO, GSO and GRO on. Off by default: captures must show what the wire would carry."""

    firewall: str = "auto"
    """``iptables`` (legacy tables), ``nftables``, or ``auto``: the first where it works, else the second."""

    preload: tuple[str, ...] = ()
    """Modules that ``spawn_module`` programs will import, dotted names. Where programs are forks of a warm process that
    process imports them once: in namespaces before the nodes are made, for this testbed and all that come after it; in
    containers each end's agent, before the testbed is up."""

    uplink: Uplink | None = None
    """A server outside, or None. A backend that has one gives the router a third network that leads there:

    - The client and the router reach ``uplink.address``; where ``uplink.named``, the name resolves to it in the client.
    - What leaves by that network has the router's address there as its source (``translation.open_translation``): no
      user-mode network stack ends a connection, the far kernel talks to the client's own. The hole is before that.
    - The router's settings are those of ``translation.sysctls``, so that no translation ends before the run does.
    - The router's right capture is of that network's interface. Its own merge nothing (GRO off) and split nothing
      (TSO and GSO on): what comes merged from outside leaves as it came, and both captures show the same.
    - The server node is there all the same, on its own link: the bystander's server runs in it.

    Raises Unsupported, with what stands in the way, where it cannot: a stack in between would end the far connection
    itself and go on acknowledging for a peer that is dead.
    """


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a program's output."""

    at: float
    """When its newline was read from the pipe."""

    stream: str
    """stdout or stderr."""

    text: str
    """Without the newline; undecodable octets as backslash escapes."""


class Process(Protocol):
    """A command that runs in a node."""

    @property
    def argv(self) -> Sequence[str]:
        """The command as it was given."""

    @property
    def pid(self) -> int:
        """Process id in the caller's PID namespace, 0 where the caller cannot see it."""

    @property
    def started_at(self) -> float:
        """When it was started."""

    @property
    def lines(self) -> Sequence[Line]:
        """All output so far, both streams, in the order read."""

    @property
    def lost_bytes(self) -> int:
        """How much of the output is missing from ``lines``: it came too fast, or was more than is kept."""

    @property
    def returncode(self) -> int | None:
        """Exit status, negative signal number, or None while it runs."""

    @property
    def exited_at(self) -> float | None:
        """When it exited."""

    def wait_for_line(self, pattern: str | re.Pattern[str], timeout_s: float, *, since: float = 0.0) -> Line:
        """The first line at or after ``since`` in which the pattern is found.

        Raises:
            TimeoutError: it did not come; the message has the last lines and says whether the program still runs.
        """

    def listen(self, hear: Callable[[Line], None]) -> None:
        """Have every line told as soon as it is read: those so far at once, then each as it comes, once and in order.

        Args:
            hear: Called by the thread that reads for the whole testbed, which waits for it: it takes note, and no more.
        """

    def wait(self, timeout_s: float) -> int:
        """The exit status.

        Raises:
            TimeoutError: it still runs.
        """

    def send_signal(self, number: int) -> None:
        """Send a signal; a program that has exited is no error."""

    def write(self, text: str) -> None:
        """Write to its standard input, which stays open until ``close_stdin``."""

    def close_stdin(self) -> None:
        """End its standard input."""


@dataclass(frozen=True, slots=True)
class SocketTrack:
    """What a watched socket went through."""

    samples: Sequence[SocketSample]
    """In order; sparse while nothing is due, dense around each announced expiry."""

    gone_at: float | None
    """Middle of the interval in which the kernel stopped listing it (the give-up, or its close), or None."""

    gone_within_s: float
    """Half the width of that interval: how exactly ``gone_at`` is known."""

    late: Sequence[tuple[float, float]] = ()
    """Wake-ups of the sampler that came late: instant and lateness, seconds. A machine that keeps a process waiting
    keeps its kernel's timers waiting too."""


class Node(Protocol):
    """A place with its own network namespace in which commands run."""

    @property
    def name(self) -> str:
        """client, router or server."""

    @property
    def ipv4(self) -> str:
        """The address that the other nodes know it by."""

    @property
    def ipv6(self) -> str:
        """The same for IPv6."""

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Process:
        """Start a command.

        Args:
            argv: Program and arguments; never a shell string.
            env: Added to the caller's environment.
            cwd: Working folder; the caller's where None.

        Raises:
            UsageError: the program does not exist or cannot be executed.
        """

    def spawn_module(self, module: str, argv: Sequence[str] = ()) -> Process:
        """Start one of the lab's own programs as ``python -m module`` would, without an interpreter's cost.

        Args:
            module: Dotted name of a module with ``main(argv)``.
            argv: Its arguments.
        """

    def nudge(self, source: Endpoint, destination: Endpoint) -> None:
        """Send one old acknowledgment from ``source`` to ``destination``, past the node's own TCP.

        No receiver takes it. In the hole it shows that the rule bites on an idle flow, elsewhere that nothing does.
        """

    def sockets(self) -> Sequence[SocketSample]:
        """Every TCP socket of the namespace, both families, listeners included."""

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of one established socket, read from its owner's descriptor; None where that is impossible."""

    def watch(self, flow: FourTuple) -> None:
        """Begin to sample this node's socket of the flow, until it is gone or the testbed is."""

    def track(self, flow: FourTuple) -> SocketTrack:
        """What ``watch`` has seen so far."""

    def counters(self) -> Counters:
        """All counters of the namespace now (the files behind ``nstat -az``)."""

    def read_sysctl(self, name: str) -> str:
        """Value of a sysctl in the namespace, white space folded.

        Raises:
            Unsupported: this kernel has no such key.
        """

    def write_sysctl(self, name: str, value: str) -> None:
        """Set a sysctl in the namespace.

        Raises:
            Unsupported: this kernel has no such key.
            UsageError: the kernel refuses the value.
        """


@dataclass(frozen=True, slots=True)
class CutReceipt:
    """When the rules went live or were taken back."""

    began_at: float
    """Just before the commit."""

    done_at: float
    """Just after it: no packet of the flow passes from here on (or is dropped, for a heal)."""


class TrackState(enum.Enum):
    """How connection tracking sees a TCP connection, in the kernel's order (``enum tcp_conntrack``)."""

    NONE = "none"
    SYN_SENT = "syn-sent"
    SYN_RECV = "syn-received"
    ESTABLISHED = "established"
    FIN_WAIT = "fin-wait"
    CLOSE_WAIT = "close-wait"
    LAST_ACK = "last-ack"
    TIME_WAIT = "time-wait"
    CLOSE = "close"
    SYN_SENT2 = "syn-sent-2"


@dataclass(frozen=True, slots=True)
class PassingFlow:
    """A flow as the router's connection tracking has it."""

    flow: FourTuple
    """As the client sent it, before any translation of addresses."""

    state: TrackState
    assured: bool
    """Both ends have been heard; such an entry is not thrown out for want of room."""

    packets: tuple[int, int] | None
    """Forward and return, those that the router dropped included; None where they are not counted."""

    octets: tuple[int, int] | None
    """The same in octets of IP."""

    since: float | None
    """Unix time of its first packet; None where connections are not dated."""

    translated: FourTuple | None = None
    """As the far end has it; None where that is the same."""


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file of a side: packets up to ``octets`` are whole, whatever is written behind them later."""

    path: Path
    octets: int
    since: float
    """From here on nothing is missing before the next file, CLOCK_MONOTONIC seconds."""


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """What a capture holds, after it was drained, and closed unless it goes on."""

    files: Mapping[str, Path]
    """pcapng per side: left (the interface towards the client), right (towards the server, with an uplink the one that
    leads out), and where the fault has a sink device that one as well."""

    packets: Mapping[str, int]
    """Written per side."""

    dropped: Mapping[str, int]
    """Per side, what the kernel counted as dropped for want of buffer (PACKET_STATISTICS)."""

    started_at: float
    """From here on the capture is complete."""

    stopped_at: float
    clocks: Sequence[ClockPair]
    """Sampled at start and end, at least two."""

    pieces: Mapping[str, Sequence[CaptureFile]] = field(default_factory=dict)
    """Per side, oldest first: one, or the two that a bound on the size has left."""

    @property
    def left(self) -> Path:
        """The file of the interface towards the client."""
        return self.files["left"]

    @property
    def right(self) -> Path:
        """The file of the interface towards the server."""
        return self.files["right"]


class Router(Node, Protocol):
    """The only path between client and server, and the owner of the fault."""

    @property
    def firewall(self) -> str:
        """Which implementation owns the rules: iptables or nftables."""

    def prepare(self, fault: Fault) -> None:
        """Build the fault's rules without putting them in force, so that ``cut`` is one commit.

        A fault with a sink gets its device now, and the capture that runs has one more side: ``sink``.
        """

    def cut(self, fault: Fault) -> CutReceipt:
        """Put the fault in force: both directions in one atomic commit, before every other rule. Idempotent."""

    def heal(self, fault: Fault) -> CutReceipt:
        """Take the fault back, counters kept. Idempotent."""

    def matched(self, fault: Fault) -> Matched:
        """Packets that the fault's rules dropped, read from the kernel; after a heal, the last reading."""

    def forget(self, fault: Fault) -> None:
        """Remove the rules of a fault that is not in force, counters and all; for those who make many. Idempotent."""

    def flows(self) -> Sequence[PassingFlow]:
        """The TCP flows that pass, from the first packet after the firewall was first asked for anything."""

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """Capture both interfaces to ``left.pcapng`` and ``right.pcapng``; returns once packets are being caught.

        Args:
            folder: Exists and is writable.
            filter_expression: pcap-filter(7), attached in the kernel; TCP, ICMP and ICMPv6 where None.
            ring_bytes: Buffer per side; 0 takes the backend's default.
            limit_bytes: On disk per side; what no longer fits is forgotten, oldest first, half of it at a time. 0 sets
                no bound.
        """

    def flush_capture(self) -> CaptureSummary:
        """Write everything that was caught until now, which is the summary's ``stopped_at``; the capture goes on."""

    def stop_capture(self) -> CaptureSummary:
        """Drain, close and summarise. The files are complete when this returns."""


class Testbed(Protocol):
    """Client, router and server with two links; a context manager that leaves nothing behind."""

    __test__: bool = False

    @property
    def backend(self) -> str:
        """Which kind it is: netns or docker."""

    @property
    def client(self) -> Node:
        """The node that opens the connections."""

    @property
    def router(self) -> Router:
        """The node in the middle."""

    @property
    def server(self) -> Node:
        """The node that accepts them."""

    def move_client(self) -> str:
        """Take the client's addresses away and give it others of the same link, both families; the new IPv4 address.

        The router stays its only way out, and its name resolves to the new ones. No packet of what it has connected
        passes any more, and no kernel is told: the client's goes on trying, and what is sent to the old address is
        dropped where it arrives. This cannot be healed.

        Raises:
            InvalidRun: the kernel did not do it.
        """

    def interventions(self) -> Sequence[str] | None:
        """What others have done to its nodes, programs and links since it was up, a phrase each.

        None where nobody can tell.
        """

    def close(self) -> None:
        """End every process and remove everything; idempotent."""

    def __enter__(self) -> Self:
        """The testbed itself."""

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
