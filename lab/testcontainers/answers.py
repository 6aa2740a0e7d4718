"""What the controller answers, as values: the same over HTTP and within one process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from lab.core.fault import Cut, Matched, Scope
from lab.core.flow import Endpoint, FourTuple
from lab.core.verdict import Check, Outcome
from lab.testbed.ports import PassingFlow, TrackState

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault at one instant."""

    id: str
    flow: FourTuple
    direction: Cut
    scope: Scope
    in_force: bool
    """Whether the flow is dark."""

    matched: Matched
    """Packets that the rules dropped."""

    cut_at: float
    """Unix time."""

    healed_at: float | None
    """Unix time; None while it is in force."""

    healed_by: str | None
    """request, timer, heartbeat or shutdown."""

    @classmethod
    def of(cls, answer: Json) -> Self:
        """From the API's answer."""
        return cls(
            id=answer["id"],
            flow=flow_of(answer["flow"]),
            direction=Cut(answer["direction"]),
            scope=Scope(answer["scope"]),
            in_force=answer["state"] == "cut",
            matched=Matched(answer["matched"]["forward"], answer["matched"]["return"]),
            cut_at=answer["cut_at"],
            healed_at=answer["healed_at"],
            healed_by=answer["healed_by"],
        )


@dataclass(frozen=True, slots=True)
class Way:
    """What the router saw of one direction; seconds count from the cut."""

    cut: bool
    """Whether this direction was dropped."""

    matched: int
    """Packets that the rule dropped."""

    missing: int
    """Packets that entered the router and never left it."""

    crossed: int
    """Segments that came through the hole."""

    first_lost_s: float | None
    copy_times_s: tuple[float, ...]
    """Segments that the sender sent again while it was dark."""

    back_s: float | None
    """The first segment that came through after the heal."""

    @property
    def copies(self) -> int:
        """How many segments were sent again."""
        return len(self.copy_times_s)

    @classmethod
    def of(cls, answer: Json) -> Self:
        """From the API's answer."""
        return cls(
            cut=answer["cut"],
            matched=answer["matched"],
            missing=answer["missing"],
            crossed=answer["crossed"],
            first_lost_s=answer["first_lost_s"],
            copy_times_s=tuple(answer["copy_times_s"]),
            back_s=answer["back_s"],
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the hole was a hole, as far as the router can prove it."""

    outcome: Outcome
    """CONFIRMED, or INVALID: it could not be proved."""

    reason: str | None
    """Which proofs failed."""

    final: bool
    """Whether the fault is healed."""

    came_back: bool | None
    """Whether both directions talk again; None while it is cut."""

    forward: Way
    return_: Way
    checks: tuple[Check, ...]

    @property
    def confirmed(self) -> bool:
        """Whether it was."""
        return self.outcome is Outcome.CONFIRMED

    @classmethod
    def of(cls, answer: Json) -> Self:
        """From the API's answer."""
        return cls(
            outcome=Outcome(answer["outcome"]),
            reason=answer["reason"],
            final=answer["final"],
            came_back=answer["came_back"],
            forward=Way.of(answer["forward"]),
            return_=Way.of(answer["return"]),
            checks=tuple(Check(one["name"], one["ok"], one["detail"]) for one in answer["checks"]),
        )


def flow_of(answer: Json) -> FourTuple:
    """A flow from its two ends."""
    return FourTuple(_endpoint(answer["client"]), _endpoint(answer["server"]))


def passing_of(answer: Json) -> PassingFlow:
    """A flow that passes, from the API's answer."""
    packets, octets = answer["packets"], answer["octets"]
    return PassingFlow(
        flow=flow_of(answer),
        state=TrackState(answer["state"]),
        assured=answer["assured"],
        packets=None if packets is None else (packets["forward"], packets["return"]),
        octets=None if octets is None else (octets["forward"], octets["return"]),
        since=answer["since"],
    )


def _endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    return Endpoint(address.strip("[]"), int(port))
