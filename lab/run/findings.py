"""Everything that was measured in a run, in one place, before anybody judges it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.core.fault import Matched
from lab.core.flow import Direction, FourTuple
from lab.core.hole import Passage
from lab.core.prediction import GiveUp, State
from lab.core.socket import SocketSample
from lab.run.fate import KernelFate
from lab.run.forecast import EndForecast
from lab.run.noticing import Noticing
from lab.run.orphan import Orphan
from lab.run.spec import ORPHANED
from lab.run.traffic import Traffic
from lab.testbed.ports import CaptureSummary, CutReceipt


@dataclass(frozen=True, slots=True)
class EndFinding:
    """One end: what was said before, and what came."""

    name: str
    """client or server."""

    direction: Direction
    """The way it sends in."""

    forecast: EndForecast
    traffic: Traffic
    fate: KernelFate
    noticing: Noticing
    program_error_at: float | None
    """When one of the lab's own programs was given an error; a second witness of the kernel's give-up."""

    killed: bool
    """Whether somebody else than the run ended its program by SIGKILL, which no program can do in answer to a loss."""

    counted: Mapping[str, int]
    """What this node sent again in the whole capture, every flow: retransmissions, keepalive and window probes."""

    counters: Mapping[str, int]
    """The kernel's own counts over the same time, by the same names."""

    late_s: float
    """By how much the node's sampler was woken too late at worst since the cut: the machine was busy, and its kernel's
    timers may have been late as well."""

    samples: Sequence[SocketSample]
    """The socket as it was looked at, for the timeline."""

    seen_until: float | None
    """Last look at the socket, CLOCK_MONOTONIC; None where it was never seen."""

    orphan: Orphan | None = None
    """What became of the socket after a close that the run is not about."""

    @property
    def lost_at(self) -> float | None:
        """When its first send was lost that is not its program's close itself, CLOCK_MONOTONIC.

        Data may leave in one segment with the close's FIN, as of a corked socket: then that is a send.
        """
        lost_at, let_go_at = self.traffic.lost_at, self.let_go_at
        if lost_at is None or let_go_at is None or self.traffic.lost_length:
            return lost_at
        return None if lost_at >= let_go_at else lost_at

    @property
    def sends(self) -> bool:
        """Whether it had something to lose; a closed window keeps back what it has."""
        return self.lost_at is not None or self.forecast.state is State.ZERO_WINDOW

    @property
    def branch(self) -> GiveUp:
        """The branch of the forecast that applied."""
        return self.forecast.branch(sends=self.sends)

    @property
    def anchor(self) -> float | None:
        """What that branch counts from, CLOCK_MONOTONIC."""
        return self.forecast.anchor(self.lost_at, self.traffic.heard_at or self.forecast.heard_at)

    @property
    def let_go_at(self) -> float | None:
        """When the program closed a socket that its kernel had not given up, CLOCK_MONOTONIC.

        None in the states that begin with a close: there the kernel's end is what the run is about.
        """
        return None if self.forecast.state in ORPHANED else self.fate.closed_at

    @property
    def window(self) -> tuple[float, float] | None:
        """The predicted give-up, CLOCK_MONOTONIC; None is never."""
        if self.branch.window_s is None or self.anchor is None:
            return None
        return self.anchor + self.branch.window_s[0], self.anchor + self.branch.window_s[1]


@dataclass(frozen=True, slots=True)
class FarFinding:
    """The far end of a run with an uplink: its kernel and program are not the lab's to look at, its segments are."""

    translated: FourTuple | None
    """The flow as the far end has it; None where the router's connection tracking did not know it."""

    steady: bool
    """Whether the translation was the same before the cut and at the end."""

    passed: Mapping[Direction, int]
    """The flow's segments before the cut that both sides of the router saw, so translated."""

    traffic: Traffic


@dataclass(frozen=True, slots=True)
class BystanderFinding:
    """The second flow."""

    alive: bool
    """It was still answered when the watch ended, and nothing told it of any trouble."""

    lost: int
    """Its retransmissions in both captures."""

    longest_gap_s: float
    """Between two of its answers."""


@dataclass(frozen=True, slots=True)
class Findings:
    """A whole run."""

    client: EndFinding
    server: EndFinding | None
    """None where the server is outside: then there is ``far``."""

    far: FarFinding | None
    passages: Sequence[Passage]
    """Of the directions that were cut."""

    matched: Matched
    icmp: int
    """ICMP and ICMPv6 errors seen on either side while it was dark."""

    bystander: BystanderFinding
    capture: CaptureSummary
    cut: CutReceipt
    healed: CutReceipt | None
    ended_early: int | None
    """FIN and RST segments of the flow before the cut was done; None where the run is about a flow that is closed."""

    watched_until: float
    """CLOCK_MONOTONIC."""

    counters: Mapping[str, Mapping[str, int]]
    """Per node, how far each counter moved."""

    reconnected: bool | None
    """Whether a new connection was set up while the old one was dark; None where none was tried."""

    open_ways: Sequence[Passage] = ()
    """Of the directions that were not cut."""

    interventions: Sequence[str] | None = None
    """What others did to the testbed meanwhile; None where nobody can tell."""

    @property
    def ends(self) -> tuple[EndFinding, ...]:
        """Client and server, those of them that were observed."""
        return (self.client,) if self.server is None else (self.client, self.server)

    def other(self, end: EndFinding) -> EndFinding | None:
        """The peer of this end; None where it is outside."""
        return self.server if end.name == self.client.name else self.client

    @property
    def horizon_s(self) -> float:
        """How long was watched after the cut."""
        return self.watched_until - self.cut.done_at
