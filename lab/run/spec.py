"""What a run is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.core.errors import UsageError
from lab.core.fault import Cut, Placement, Scope
from lab.core.prediction import State
from lab.core.profiles import PROFILES, Profile
from lab.core.socket import SocketOptions
from lab.core.uplink import Uplink
from lab.run.trigger import LineTrigger, require_expression
from lab.testbed.ports import Node, Testbed

MIN_PORT, MAX_PORT = 1, 65535
ORPHANED = frozenset({State.FIN_WAIT_1, State.LAST_ACK, State.FIN_WAIT_2})
"""States that a socket enters when its program closes it."""

NODES = ("client", "router", "server")
FLOW_CHOICES = ("first", "newest")


@dataclass(frozen=True, slots=True)
class Program:
    """What runs in a node: the user's command, or one of the lab's own programs."""

    argv: tuple[str, ...]
    """Program and arguments; the arguments alone for a program of the lab's own."""

    module: str | None = None
    """Dotted name of a program of the lab's own, started without the cost of a new interpreter."""

    @property
    def own(self) -> bool:
        """Whether its output is the lab's own JSON lines."""
        return self.module is not None

    def __str__(self) -> str:
        return " ".join(self.argv if self.module is None else (self.module.rpartition(".")[2], *self.argv))


@dataclass(frozen=True, slots=True)
class Action:
    """A line written to a program's standard input, or a signal, at a set time."""

    at_s: float
    """Seconds from the cut; negative ones are written once the flow stands, that long before the cut."""

    node: str
    """client or server."""

    text: str = ""
    """The line, without its newline."""

    signal: int | None = None
    """A signal to send instead."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One experiment: two programs, a fault, and how long to watch."""

    server: Program | None
    """None where the server is outside of the testbed."""

    client: Program
    port: int
    """The server's TCP port; how the flow is found."""

    name: str = "run"
    """Goes into the folder's name and the report."""

    profile: Profile = field(default_factory=lambda: PROFILES["linux"])
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per node, on top of the profile."""

    ipv6: bool = False
    cut_after_s: float = 1.0
    """From the first byte in each direction."""

    cut_when: LineTrigger | None = None
    """The cut follows this line, whatever ``cut_after_s`` says."""

    heal_after_s: float | None = None
    """From the cut; None leaves the flow dark."""

    heal_when: LineTrigger | None = None
    """The heal follows the first such line that comes after the cut."""

    end_when: LineTrigger | None = None
    """The watch ends with the first such line that comes after the cut, or with ``watch_s``, and with nothing else."""

    direction: Cut = Cut.BOTH
    scope: Scope = Scope.FLOW
    placement: Placement = Placement.ROUTER
    flow: str | None = None
    """Which of several matching flows: first, newest, or the client's port. None: there must be one."""

    watch_s: float | None = None
    """How long to watch after the cut; None watches until the predicted window of both ends has closed."""

    noticed: str | None = None
    """Regular expression; the client has noticed when a line of its output matches."""

    actions: tuple[Action, ...] = ()
    writes_on: bool = True
    """Whether the programs may go on writing after their first lost segment; nobody knows of a foreign program."""

    client_state: State = State.ESTABLISHED
    """What the client's socket is doing when its path goes dark."""

    server_state: State = State.ESTABLISHED
    talks: bool = True
    """Whether data goes both ways before the cut; a peer that never answers would be waited for in vain."""

    reconnect_at_s: float | None = None
    """When to try a new connection from the client to the same server port, seconds from the cut."""

    declared_options: SocketOptions | None = None
    """What the client will set on a socket that does not exist before the cut."""

    connect_from: int | None = None
    """The client's port, for a hole that is there before the connection is: SYN and SYN/ACK lost."""

    firewall: str = "auto"
    preload: tuple[str, ...] = ()
    """Modules that the lab's own programs import; see ``TestbedSpec``."""

    uplink: Uplink | None = None
    """The server, where it is outside: the lab neither starts it nor looks into it."""

    @property
    def far_name(self) -> str:
        """What the client calls its server."""
        return "server" if self.uplink is None else self.uplink.host

    @property
    def closes(self) -> bool:
        """Whether the run is about a connection that a program closes."""
        return bool({self.client_state, self.server_state} & ORPHANED)

    def __post_init__(self) -> None:
        _check_port("The port", self.port)
        for node in self.sysctls:
            if node not in NODES:
                raise UsageError(f"Sysctls can be set in {', '.join(NODES)}; there is no node {node!r}.")
        self._check_times()
        self._check_far_end()
        if self.flow is not None and self.flow not in FLOW_CHOICES:
            if not self.flow.isdecimal():
                raise UsageError(f"The flow is first, newest or one of the client's ports; {self.flow!r} is none.")
            _check_port("The flow's port", int(self.flow))
        require_expression(self.noticed or "")
        self._check_triggers()

    def _check_triggers(self) -> None:
        """Refuse triggers that contradict the clock, or that nothing can pull."""
        if self.heal_when is not None and self.heal_after_s is not None:
            raise UsageError("The heal comes after a time or after a line, not after both.")
        if self.cut_when is not None and self.connect_from is not None:
            raise UsageError("A hole that is there before the connection is cannot follow a line of the client's.")
        if self.cut_when is not None and any(action.at_s < 0 for action in self.actions):
            raise UsageError(
                "Nothing can be done so long before a cut that follows a line: nobody knows when it comes."
            )
        for trigger in (self.cut_when, self.heal_when, self.end_when):
            if trigger is not None and trigger.node == "server" and self.uplink is not None:
                raise UsageError(f"The server is {self.uplink}, outside of the testbed; what it prints is not seen.")

    def _check_far_end(self) -> None:
        """Refuse what asks for more of an outside server than that it is there."""
        uplink = self.uplink
        if uplink is None:
            if self.server is None:
                raise UsageError("A run needs a server: a program in the testbed, or one outside (an uplink).")
            return
        if self.server is not None or self.port != uplink.port or self.ipv6 != uplink.ipv6:
            raise UsageError(
                f"The server is {uplink}, outside of the testbed; another server, port or family was given."
            )
        if "server" in self.sysctls or any(action.node == "server" for action in self.actions):
            raise UsageError(f"The server is {uplink}, outside of the testbed; nothing can be set or done there.")
        if self.placement is not Placement.ROUTER or self.connect_from or self.server_state is not State.ESTABLISHED:
            raise UsageError("With an uplink only established flows can be cut, and only in the router.")

    def _check_times(self) -> None:
        heal_s, watch_s = self.heal_after_s, self.watch_s
        if self.cut_after_s < 0:
            raise UsageError(f"The cut cannot come before the first byte; it was asked for at {self.cut_after_s:g} s.")
        if heal_s is not None and heal_s <= 0:
            raise UsageError(f"The heal must come after the cut; it was asked for {heal_s:g} s after it.")
        if watch_s is not None and watch_s <= 0:
            raise UsageError(f"Watching must take some time; {watch_s:g} s were asked for.")
        if heal_s is not None and watch_s is not None and heal_s >= watch_s:
            raise UsageError(
                f"The heal, {heal_s:g} s after the cut, would come after the watch, which ends at {watch_s:g} s.",
                fix="watch for longer than that, or heal earlier",
            )


def inside(testbed: Testbed, spec: RunSpec) -> tuple[Node, ...]:
    """The nodes that hold an end of the flow, the client's first."""
    return (testbed.client, testbed.server) if spec.uplink is None else (testbed.client,)


def _check_port(what: str, port: int) -> None:
    if not MIN_PORT <= port <= MAX_PORT:
        raise UsageError(
            f"{what} must lie in {MIN_PORT} to {MAX_PORT}; it is {port}.", fix="give the port that the flow really has"
        )
