"""Finds the flow that the user means, from the node and the server's port alone."""

import ipaddress
import signal
from collections.abc import Sequence

from lab.core.errors import UsageError
from lab.core.flow import FourTuple
from lab.core.socket import SocketSample, TcpState, Timer
from lab.core.uplink import Uplink
from lab.run.noticing import event_of
from lab.run.patience import Patience
from lab.testbed.names import NAME_SERVER
from lab.testbed.ports import Node, Process

LISTEN_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 10.0
TALK_TIMEOUT_S = 10.0
KNOCK_S = 5.0
"""How long an outside server may take to accept a connection, when it is asked why there is none."""

LAST_LINES = 5
FRESH_S = 0.06
"""How old an answered window probe may be; the shortest pause between two is 200 ms."""


def wait_for_listener(node: Node, process: Process, port: int, patience: Patience) -> None:
    """Return once a socket listens on the port.

    Raises:
        UsageError: the program exited, or listens elsewhere or nowhere.
    """

    def look() -> bool | None:
        if any(s.local.port == port and reachable(s) for s in listeners(node)):
            return True
        refuse_exit(process, "listened")
        return None

    if patience.until(look, LISTEN_TIMEOUT_S) is None:
        others = ", ".join(sorted({str(s.local if not reachable(s) else s.local.port) for s in listeners(node)}))
        seen = f"it listens on {others}" if others else "it listens on no port at all"
        alone = any(s.local.port == port for s in listeners(node))
        fix = (
            "let the server listen on 0.0.0.0, or :: with --ipv6; its loopback address is reached by nobody else"
            if alone
            else "give --port the port on which the server accepts connections from other hosts"
        )
        raise UsageError(
            f"The server runs, but after {LISTEN_TIMEOUT_S:g} s nobody listens on TCP port {port}; {seen}.",
            fix=fix,
        )


def listeners(node: Node) -> list[SocketSample]:
    """The listening sockets of the node's programs."""
    return [s for s in node.sockets() if s.state is TcpState.LISTEN and s.local.address != NAME_SERVER]


def reachable(listener: SocketSample) -> bool:
    """Whether other hosts can connect to it."""
    return not ipaddress.ip_address(listener.local.address).is_loopback


class Roll:
    """The client's connections to the port, oldest first, by when each was first seen.

    The kernel tells no age: inode numbers come in batches per processor. They settle the order of what appeared
    between two looks only.

    Args:
        node: The client's.
        port: The server's.
        address: The server's, where a connection to the same port of another host is none of the run's.
    """

    def __init__(self, node: Node, port: int, address: str | None = None) -> None:
        self.node = node
        self._port = port
        self._address = address
        self._since: dict[int, int] = {}
        self._looks = 0
        self.seen: Sequence[SocketSample] = ()
        """All sockets of the node at the last look."""

    def look(self) -> list[SocketSample]:
        """Those that are established now."""
        self._looks += 1
        self.seen = self.node.sockets()
        found = established(self.seen, self._port, self._address)
        for sample in found:
            self._since.setdefault(sample.inode, self._looks)
        return sorted(found, key=lambda s: (self._since[s.inode], s.inode))


def find_flow(
    roll: Roll, process: Process, port: int, choice: str | None, patience: Patience, *, called: str = "server"
) -> FourTuple:
    """The client's established flow to the port.

    Args:
        roll: The client's connections.
        process: The client's program; its early exit is an error.
        port: The server's.
        choice: first, newest or a client port where several match; None insists on exactly one.
        patience: Waits.
        called: By which name the client reaches the server.

    Raises:
        UsageError: no flow, or several and no choice.
    """
    seen: list[SocketSample] = []

    def look() -> FourTuple | None:
        seen[:] = roll.look()
        if not seen:
            refuse_exit(process, "connected")
            return None
        if choice is not None and choice.isdecimal() and all(str(s.local.port) != choice for s in seen):
            return None  # It may still come.
        return four_tuple(choose(seen, choice))

    flow = patience.until(look, CONNECT_TIMEOUT_S)
    if flow is None and seen:
        choose(seen, choice)
    if flow is None:
        raise UsageError(
            f"The client runs, but after {CONNECT_TIMEOUT_S:g} s it has no connection to port {port}. {tail(process)}",
            fix=f"let the client connect to '{called}' and that port",
        )
    return flow


def wait_for_talk(node: Node, process: Process, flow: FourTuple, patience: Patience) -> bool:
    """Return once a byte has gone each way, True; False where only silence or one way was seen.

    Raises:
        UsageError: the client exited before, or let go of the flow.
    """

    def look() -> bool | None:
        sample = sample_of(node.sockets(), flow)
        if sample is None:
            refuse_exit(process, "talked")
            raise UsageError(f"The client's connection ended before data had gone both ways. {tail(process)}")
        # The SYN is acknowledged as one byte.
        return True if sample.bytes_acked > 1 and sample.bytes_received > 0 else None

    return patience.until(look, TALK_TIMEOUT_S) is not None


def wait_for_window_probe(node: Node, flow: FourTuple, patience: Patience) -> None:
    """Return just after the peer has answered a window probe: nothing is due before the forecast is made.

    Raises:
        UsageError: there was no probe; the window is not closed.
    """

    def look() -> bool | None:
        sample = sample_of(node.sockets(), flow)
        fresh = sample is not None and sample.timer is Timer.PROBE and sample.last_ack_received_s < FRESH_S
        return True if fresh else None

    if patience.until(look, TALK_TIMEOUT_S) is None:
        raise UsageError(f"A closed window was expected, but after {TALK_TIMEOUT_S:g} s {flow} had sent no probe.")


def knock(node: Node, uplink: Uplink, patience: Patience) -> tuple[bool, str]:
    """Whether an outside server that the user's client has no connection with accepts one of the lab's own."""
    argv = (uplink.address, str(uplink.port), "--connect-only")
    probe = node.spawn_module("lab.programs.client", argv)

    def look() -> tuple[bool, str] | None:
        events = {str(e.get("event")): e for e in map(event_of, probe.lines) if e is not None}
        if "connected" in events:
            return True, f"{uplink} accepts connections."
        if "error" in events:
            return False, f"{uplink} cannot be connected to: {events['error'].get('errno')}."
        return None

    try:
        return patience.until(look, KNOCK_S) or (False, f"{uplink} did not answer within {KNOCK_S:g} s.")
    finally:
        probe.send_signal(signal.SIGKILL)


def established(samples: Sequence[SocketSample], port: int, address: str | None = None) -> list[SocketSample]:
    """The sockets connected to the port, and to that address where one is given."""
    wanted = (s for s in samples if s.state is TcpState.ESTABLISHED and s.remote.port == port)
    return [s for s in wanted if address is None or s.remote.address == address]


def sample_of(samples: Sequence[SocketSample], flow: FourTuple) -> SocketSample | None:
    """This flow's socket at the client's end."""
    return next((s for s in samples if (s.local, s.remote) == (flow.client, flow.server)), None)


def choose(candidates: Sequence[SocketSample], choice: str | None) -> SocketSample:
    """The one that the user means.

    Raises:
        UsageError: several and no choice, or a choice that none fits.
    """
    if choice == "first":
        return candidates[0]
    if choice == "newest":
        return candidates[-1]
    ports = ", ".join(str(s.local.port) for s in candidates)
    if choice is not None:
        fitting = [s for s in candidates if str(s.local.port) == choice]
        if not fitting:
            raise UsageError(f"No flow leaves the client's port {choice}; those that match leave {ports}.")
        return fitting[0]
    if len(candidates) > 1:
        raise UsageError(
            f"{len(candidates)} flows match; they leave the client's ports {ports}.",
            fix="say which one: --flow first, --flow newest or --flow PORT",
        )
    return candidates[0]


def refuse_closed(sample: SocketSample | None, process: Process) -> None:
    """Raise where the flow to be cut is not open at both ends any more."""
    if sample is None:
        refuse_exit(process, "could be cut off")
        raise UsageError(f"The client's connection ended before the cut. {tail(process)}")
    if sample.state is not TcpState.ESTABLISHED:
        who = "server" if sample.state is TcpState.CLOSE_WAIT else "client"
        raise UsageError(
            f"The {who} closed the connection before the cut ({sample.state.name}). {tail(process)}",
            fix="let the programs keep it open, or cut earlier: --cut-after T",
        )


def refuse_exit(process: Process, verb: str) -> None:
    """Raise where the program has ended before it did what the run needs."""
    if process.returncode is not None:
        words = " ".join(process.argv)
        # A name with a space in it is no program's: it says whose command it is, as ``Launcher`` puts it.
        who = f"'{words}'" if " " not in process.argv[0] else words[0].upper() + words[1:]
        raise UsageError(
            f"{who} ended with status {process.returncode} before it {verb}. {tail(process)}",
            fix=_how_to_stay(process),
        )


def _how_to_stay(process: Process) -> str:
    """What mends an early end: one that reports a failure has said why, any other may have gone to the background."""
    if process.returncode and process.lines:
        return "mend what its last lines say; it has to run until the lab ends it"
    return "let it stay in the foreground until the lab ends it"


def tail(process: Process) -> str:
    """The last lines that a program printed, for a message."""
    # A traceback's carets point at nothing once the line is folded.
    lines = [text for line in process.lines if (text := line.text.strip()).strip("^~ ")][-LAST_LINES:]
    return "Its last lines: " + " | ".join(lines) if lines else "It printed nothing."


def four_tuple(sample: SocketSample) -> FourTuple:
    """The flow of a socket at the client's end."""
    return FourTuple(client=sample.local, server=sample.remote)
