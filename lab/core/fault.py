"""What the network does to a flow."""

import enum
from dataclasses import dataclass

from lab.core.flow import Direction, FourTuple


class Scope(enum.Enum):
    """How much goes dark."""

    FLOW = "flow"
    """One exact four-tuple; new connections pass."""

    HOST = "host"
    """Everything between the two addresses of the flow, new connections too."""


class Cut(enum.Enum):
    """Which direction of the flow is dropped."""

    BOTH = "both"
    FORWARD = "forward"
    RETURN = "return"

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions that are dropped, in the order of their rules."""
        if self is Cut.BOTH:
            return Direction.FORWARD, Direction.RETURN
        return (Direction(self.value),)


class Placement(enum.Enum):
    """Where the drop sits."""

    ROUTER = "router"
    """The router's FORWARD hook: the senders believe that their segments left."""

    OWN_OUTPUT = "own-output"
    """The sender's own OUTPUT hook: the wrong place, kept to show why."""

    CLIENT_SINK = "client-sink"
    """The client's namespace alone. What it sends goes into a sink device, so that its stack sees a send that
    succeeded; what comes to it is dropped in its INPUT hook."""

    SERVER_SINK = "server-sink"
    """The same in the server's namespace."""

    @property
    def sunk(self) -> Direction | None:
        """The direction that goes into a sink device, if there is one; the other one is dropped where it arrives."""
        return {Placement.CLIENT_SINK: Direction.FORWARD, Placement.SERVER_SINK: Direction.RETURN}.get(self)


@dataclass(frozen=True, slots=True)
class Fault:
    """A blackhole: packets of the flow vanish, nothing is closed."""

    flow: FourTuple
    direction: Cut = Cut.BOTH
    scope: Scope = Scope.FLOW
    placement: Placement = Placement.ROUTER


@dataclass(frozen=True, slots=True)
class Matched:
    """Packets that the fault's rules have dropped so far."""

    forward: int
    return_: int

    def of(self, direction: Direction) -> int:
        """Those of one direction."""
        return self.forward if direction is Direction.FORWARD else self.return_
