"""Bodies of requests and answers; their text is the API's documentation."""

import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from lab.control.controller import Controller
from lab.control.faults import FaultRecord
from lab.control.refusals import as_json
from lab.control.roll import Selector
from lab.control.verdict import Verdict
from lab.core.fault import Cut, Scope
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.verdict import Outcome
from lab.testbed.ports import PassingFlow, TrackState

LONGEST_S = 366 * 86400.0
_ENDPOINT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]{1,5})", re.ASCII)
_LAST_PORT = 65535


def parse_endpoint(text: str) -> Endpoint:
    """``192.0.2.10:40000`` or ``[2001:db8:1::10]:40000``.

    Raises:
        ValueError: it is neither.
    """
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= _LAST_PORT:
        raise ValueError("an address and a port were expected, as 192.0.2.10:40000 or [2001:db8:1::10]:40000")
    address = ipaddress.ip_address(match[1] or match[2])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise ValueError(f"the address as the wire has it was expected: {address.ipv4_mapped}")
    if bool(match[1]) is not (address.version == 6):
        raise ValueError("brackets belong around IPv6 addresses, and around nothing else")
    return Endpoint(str(address), int(match[3]))


def _checked(text: str) -> str:
    return str(parse_endpoint(text))


EndpointText = Annotated[
    str, Field(max_length=64, examples=["192.0.2.10:40000", "[2001:db8:1::10]:40000"]), AfterValidator(_checked)
]
Port = Annotated[int, Field(ge=1, le=_LAST_PORT, strict=True)]


class Strict(BaseModel):
    """A body in which an unknown member is an error: a misspelt one must not be passed over."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FlowName(Strict):
    """One flow by both of its ends."""

    client: EndpointText
    server: EndpointText

    @model_validator(mode="after")
    def _one_family(self) -> Self:
        if self.client.startswith("[") is not self.server.startswith("["):
            raise ValueError("two addresses of one family were expected")
        return self

    def four_tuple(self) -> FourTuple:
        """As the core has it."""
        return FourTuple(parse_endpoint(self.client), parse_endpoint(self.server))


class FlowSelector(Strict):
    """One flow by the server's port."""

    server_port: Port
    which: Literal["first", "newest"] | Port | None = Field(
        None, description="Where several match: the oldest, the newest, or the one from this port of the client."
    )


class FaultOrder(Strict):
    """What to cut: exactly one of ``flow`` and ``select``."""

    flow: FlowName | None = None
    select: FlowSelector | None = None
    direction: Cut = Field(Cut.BOTH, description="Which way is dropped; forward is from the client to the server.")
    scope: Scope = Field(Scope.FLOW, description="This flow alone, or everything between its two hosts.")
    heal_after_s: float | None = Field(
        None, gt=0, le=LONGEST_S, allow_inf_nan=False, description="Heal by itself after so many seconds."
    )
    must_exist: bool = Field(True, description="Refuse a flow that does not pass; false cuts one that is yet to come.")

    @model_validator(mode="after")
    def _one_flow(self) -> Self:
        if (self.flow is None) is (self.select is None):
            raise ValueError("exactly one of flow and select was expected")
        return self

    def target(self) -> FourTuple | Selector:
        """The flow, or what it is chosen by."""
        if self.flow is not None:
            return self.flow.four_tuple()
        assert self.select is not None
        return Selector(self.select.server_port, self.select.which)


class FlowView(BaseModel):
    """A flow that passes the router, as its connection tracking has it; it may be dead at both ends."""

    client: str
    server: str
    state: TrackState
    assured: bool
    packets: dict[Literal["forward", "return"], int] | None = Field(description="Dropped ones included.")
    octets: dict[Literal["forward", "return"], int] | None
    since: float | None = Field(description="Unix time of the first packet; null where the kernel does not date flows.")
    fault: str | None = Field(description="Id of the fault that keeps it dark.")

    @classmethod
    def of(cls, one: PassingFlow, fault: str | None) -> Self:
        """A flow and its fault."""
        return cls(
            **as_json(one.flow),
            state=one.state,
            assured=one.assured,
            packets=None if one.packets is None else {"forward": one.packets[0], "return": one.packets[1]},
            octets=None if one.octets is None else {"forward": one.octets[0], "return": one.octets[1]},
            since=one.since,
            fault=fault,
        )


class FlowList(BaseModel):
    """Open flows, oldest first."""

    flows: list[FlowView]


class FlowEnds(BaseModel):
    """A flow by both of its ends."""

    client: str
    server: str


class FaultView(BaseModel):
    """A fault: in force (``cut``) or taken back (``healed``)."""

    id: str
    state: Literal["cut", "healed"]
    flow: FlowEnds
    direction: Cut
    scope: Scope
    cut_at: float = Field(description="Unix time; no packet passes from here on.")
    heal_after_s: float | None
    healed_at: float | None = Field(description="Unix time.")
    healed_after_s: float | None = Field(description="Seconds from the cut to the heal.")
    healed_by: Literal["request", "timer", "heartbeat", "shutdown"] | None
    age_s: float = Field(description="Seconds since the cut.")
    matched: dict[Literal["forward", "return"], int] = Field(description="Packets dropped, counted by the rules.")

    @classmethod
    def of(cls, record: FaultRecord, now: float) -> Self:
        """The fault as of a CLOCK_MONOTONIC instant."""
        healed = record.healed
        return cls(
            id=record.name,
            state="cut" if healed is None else "healed",
            flow=FlowEnds(**as_json(record.fault.flow)),
            direction=record.fault.direction,
            scope=record.fault.scope,
            cut_at=record.unix(record.cut.done_at),
            heal_after_s=record.heal_after_s,
            healed_at=None if healed is None else record.unix(healed.done_at),
            healed_after_s=None if healed is None else healed.done_at - record.cut.done_at,
            healed_by=record.healed_by,  # type: ignore[arg-type]  # one of the four
            age_s=now - record.cut.done_at,
            matched={"forward": record.matched.forward, "return": record.matched.return_},
        )


class FaultList(BaseModel):
    """Faults, oldest first."""

    faults: list[FaultView]


class CheckView(BaseModel):
    """One proof."""

    name: str
    ok: bool
    detail: str


class WayView(BaseModel):
    """What was seen of one direction; seconds count from the cut."""

    cut: bool = Field(description="Whether this direction was dropped.")
    matched: int
    missing: int = Field(description="Packets that entered the router and never left it.")
    crossed: int
    first_lost_s: float | None
    copies: int = Field(description="Segments that the sender of this direction sent again while it was dark.")
    copy_times_s: list[float]
    last_copy_s: float | None
    back_s: float | None = Field(description="When the first segment came through after the heal.")


class VerdictView(BaseModel):
    """Whether the hole was a hole, as far as the router can prove it; as of now where the fault is in force."""

    fault: FaultView
    outcome: Outcome = Field(description="confirmed, or invalid: it could not be proved.")
    reason: str | None
    final: bool = Field(description="Whether the fault is healed.")
    came_back: bool | None = Field(description="Whether both directions talk again; null while it is cut.")
    crossed: dict[Literal["segments", "rst", "fin", "icmp"], int]
    forward: WayView
    return_: WayView = Field(alias="return", serialization_alias="return")
    checks: list[CheckView]

    @classmethod
    def of(cls, verdict: Verdict, now: float) -> Self:
        """The verdict as of a CLOCK_MONOTONIC instant."""
        ways = verdict.evidence.ways
        cut = [ways[direction] for direction in verdict.record.fault.direction.directions]
        body: dict[str, Any] = {
            "fault": FaultView.of(verdict.record, now),
            "outcome": verdict.outcome,
            "reason": verdict.reason,
            "final": not verdict.record.in_force,
            "came_back": verdict.came_back,
            "crossed": {
                "segments": sum(way.crossed for way in cut),
                "rst": sum(way.crossed_rst for way in cut),
                "fin": sum(way.crossed_fin for way in cut),
                "icmp": verdict.evidence.icmp,
            },
            "checks": [CheckView(name=c.name, ok=c.ok, detail=c.detail) for c in verdict.checks],
            **{direction.value: _way(verdict, direction) for direction in Direction},
        }
        return cls(**body)


class Health(BaseModel):
    """How the controller is."""

    status: Literal["ok", "failing", "ending"]
    reason: str | None
    capture: Literal["starting", "running", "failed"]
    heartbeat: Literal["off", "waiting", "alive", "lost"]
    heartbeat_s: float | None = Field(description="How long the owner may be silent before everything is healed.")
    in_force: int = Field(description="Faults in force.")
    version: str

    @classmethod
    def of(cls, controller: Controller, version: str) -> Self:
        """As of now."""
        return cls(**controller.health, version=version)


class HeartbeatView(BaseModel):
    """The dead-man switch."""

    heartbeat: Literal["off", "alive"]
    heartbeat_s: float | None = Field(description="The next one must come within so many seconds; null: no switch.")


def _way(verdict: Verdict, direction: Direction) -> WayView:
    way, since = verdict.evidence.ways[direction], verdict.record.cut.done_at + verdict.offset
    copies = [round(at - since, 6) for at in way.copies_at]
    return WayView(
        cut=direction in verdict.record.fault.direction.directions,
        matched=verdict.record.matched.of(direction),
        missing=way.missing,
        crossed=way.crossed,
        first_lost_s=None if way.first_lost_at is None else round(way.first_lost_at - since, 6),
        copies=len(copies),
        copy_times_s=copies,
        last_copy_s=copies[-1] if copies else None,
        back_s=None if way.back_at is None else round(way.back_at - since, 6),
    )
