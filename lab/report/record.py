"""The record of one run: what was set, done, predicted, seen and checked. ``record.json`` is this, as JSON.

Every key but ``schema``, ``outcome`` and ``backend`` may be empty, so that a run can write a truthful record at any
moment of its life. Times are seconds from the cut and None means "did not happen", unless a field says otherwise.
Keys that this version does not know are kept when a record is read and written again.
"""

import enum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, model_validator

from lab.core.fault import Cut, Placement, Scope
from lab.core.prediction import Cause as Cause
from lab.core.verdict import Outcome as Outcome

SCHEMA: Literal[1] = 1
"""Number of the record's format; additions keep it, a changed meaning raises it."""

Window = Annotated[tuple[FiniteFloat, FiniteFloat], Field(description="[low, high], both ends included")]
CopyRange = Annotated[tuple[NonNegativeInt, NonNegativeInt], Field(description="[low, high], both ends included")]


class Activity(enum.Enum):
    """Whether an end had data to send into the hole."""

    SENDING = "sending"
    IDLE = "idle"


class NoticedBy(enum.Enum):
    """By which sign the program showed that it knew."""

    OUTPUT = "output"
    CLOSE = "close"
    EXIT = "exit"
    ERROR = "error"


class _Part(BaseModel):
    """Frozen, tolerant of keys that a later version adds, intolerant of NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, use_attribute_docstrings=True)


class Versions(_Part):
    """What ran."""

    lab: str | None = None
    kernel: str | None = None
    python: str | None = None
    libraries: dict[str, str] = {}
    tools: dict[str, str] = {}


class Settings(_Part):
    """Kernel settings that the outcome depends on, as read back from each node."""

    profile: str | None = None
    """Name or path of the profile; None where none was asked for."""

    client: dict[str, str] = {}
    router: dict[str, str] = {}
    server: dict[str, str] = {}
    hz: int | None = None
    """Timer ticks per second (CONFIG_HZ); None where the kernel does not tell."""


class SocketFacts(_Part):
    """What was measured on one end's socket before the cut; the prediction was made from it."""

    srtt_s: FiniteFloat | None = None
    rttvar_s: FiniteFloat | None = None
    rto_s: FiniteFloat | None = None
    options: dict[str, bool | int | FiniteFloat | None] | None = None
    """Fields of ``lab.core.socket.SocketOptions``; None where the owner's descriptor could not be read."""


class Sockets(_Part):
    """Both ends' sockets before the cut."""

    client: SocketFacts = SocketFacts()
    server: SocketFacts = SocketFacts()


class MatchedPackets(_Part):
    """Packets that the fault's rules dropped, counted by the router's kernel."""

    forward: NonNegativeInt | None = None
    return_: NonNegativeInt | None = Field(default=None, validation_alias="return", serialization_alias="return")


class FaultRecord(_Part):
    """What was done to the flow."""

    kind: str | None = None
    scope: Scope | None = None
    direction: Cut | None = None
    placement: Placement | None = None
    cut_at: FiniteFloat | None = None
    """Unix time, seconds; None where the run never got to the cut."""

    healed_at: FiniteFloat | None = None
    """Unix time, seconds."""

    matched: MatchedPackets = MatchedPackets()

    @property
    def healed_s(self) -> float | None:
        """Seconds from the cut to the heal."""
        return None if self.cut_at is None or self.healed_at is None else self.healed_at - self.cut_at


class FlowRecord(_Part):
    """The flow that was cut, each end as "address:port" (IPv6 addresses in brackets)."""

    client: str | None = None
    server: str | None = None


class UplinkRecord(_Part):
    """The server of a run whose far end is outside of the testbed: neither its kernel nor its program is observed.

    ``prediction.server`` says nothing then, and ``observation.server`` no more than the capture on the uplink side of
    the router shows: what it sent, its copies, and the last of them.
    """

    host: str
    """As the user named it."""

    port: int
    address: str
    """What the host resolved to before the run, and in the client."""

    translated: str | None = None
    """The client's end of the flow as the far end has it, "address:port"; None where that never became known."""


class Branch(_Part):
    """What one end's kernel is predicted to do, if the end sends (or stays idle) after the cut."""

    cause: Cause
    window_s: Window | None = None
    """When the kernel gives up, seconds from the cut, ``origin_s`` included; None means never."""

    copies: CopyRange | None = None
    """How many copies leave, a tail-loss probe included; None where the model does not say."""

    bound_s: FiniteFloat | None = None
    """The kernel's time limit, counted from its own first retransmission; None where a count decides."""

    copy_windows_s: tuple[Window, ...] = ()
    """When each copy leaves, seconds from the cut, ``origin_s`` included."""

    origin_s: FiniteFloat = 0.0
    """What the kernel's rule counts from, seconds from the cut: the first lost send, or the last packet received.
    Not known before the cut, and then 0: the window minus this is what was stated beforehand."""

    def counted_from(self, origin_s: float) -> Self:
        """The same branch with its times moved so that they count from another origin, seconds from the cut."""
        by = origin_s - self.origin_s
        window = self.window_s
        return self.model_copy(
            update={
                "origin_s": origin_s,
                "window_s": None if window is None else (window[0] + by, window[1] + by),
                "copy_windows_s": tuple((low + by, high + by) for low, high in self.copy_windows_s),
            }
        )


class EndPrediction(_Part):
    """Prediction for one end: both branches are stated before the cut, one of them applies after it."""

    applied: Activity | None = None
    """Which branch the end took; None while that is not known."""

    sending: Branch | None = None
    idle: Branch | None = None
    closing: Branch | None = None
    """What becomes of the socket if its program closes it after the cut and before this window: counted from the first
    lost send, its FIN included. Null where the model has no rule for it, or the run is about a closed socket."""

    orphan: Branch | None = None
    """What ``closing`` comes to once it is known when the program closed: a close past its window ends the socket at
    its next expiry, and ``copies`` counts those after the close. Null where none closed, or nothing was predicted of
    such a case."""

    @property
    def branch(self) -> Branch | None:
        """The branch that applied."""
        if self.applied is None:
            return None
        return self.sending if self.applied is Activity.SENDING else self.idle


class Prediction(_Part):
    """What the model said before the cut."""

    client: EndPrediction = EndPrediction()
    server: EndPrediction = EndPrediction()


class OrphanObservation(_Part):
    """What a kernel made of a socket after its program had closed it; seconds from the cut."""

    copies: NonNegativeInt | None = None
    """Those of the end's copies that left after the close."""

    gone_s: FiniteFloat | None = None
    """When the kernel ended it; None where it was still there when the watch ended."""

    gone_within_s: FiniteFloat | None = None
    """How exactly ``gone_s`` is known, plus or minus."""

    cause: Cause | None = None
    """None (the word) where it is still there, or its own timer did not end it."""


class EndObservation(_Part):
    """What one end's kernel and program did."""

    first_lost_s: FiniteFloat | None = None
    copies: NonNegativeInt | None = None
    """None where it was not counted; 0 where nothing was sent into the hole."""

    copy_times_s: tuple[FiniteFloat, ...] = ()
    copy_classes: tuple[str, ...] = ()
    """Segment class of each copy, in the order of ``copy_times_s``; empty where they were not classified."""

    last_copy_s: FiniteFloat | None = None
    gave_up_s: FiniteFloat | None = None
    gave_up_within_s: FiniteFloat | None = None
    """How exactly ``gave_up_s`` is known, plus or minus."""

    cause: Cause | None = None
    closed_s: FiniteFloat | None = None
    """When the program closed the socket that its kernel had not given up; what follows is an orphan's end."""

    held_s: FiniteFloat | None = None
    """The last look that saw the program hold a socket which it closed: the close lies between this and ``closed_s``.
    None where the wire dates the close."""

    orphan: OrphanObservation | None = None
    """What became of the socket after ``closed_s``; None where nothing was left of it, or no program closed."""

    errno: str | None = None
    """Name of the error that the program was given; None where a foreign program hides it."""

    noticed_s: FiniteFloat | None = None
    noticed_by: NoticedBy | None = None
    """A close or an exit may follow from the loss, or from the program's own schedule: only the program knows."""

    never_told: bool | None = None
    """True where neither kernel nor program of this end learned anything while it was watched; None: not known."""

    recovered_s: FiniteFloat | None = None
    """When the other end first acknowledged this end again after a heal."""

    @property
    def copies_until_closed(self) -> int | None:
        """Copies that left while its program held the socket; all of them where none closed it."""
        if self.closed_s is None or self.copies is None or len(self.copy_times_s) != self.copies:
            return self.copies
        return sum(1 for at in self.copy_times_s if at <= self.closed_s)

    @property
    def by_itself(self) -> bool:
        """Whether the program's first sign is a close or an exit before its kernel's end: its reason is not known."""
        if self.noticed_s is None or self.noticed_by not in (NoticedBy.CLOSE, NoticedBy.EXIT):
            return False
        return self.gave_up_s is None or self.noticed_s < self.gave_up_s - (self.gave_up_within_s or 0.0)


class Bystander(_Part):
    """The second flow on the same path."""

    alive: bool | None = None
    lost: NonNegativeInt | None = None


class Crossed(_Part):
    """What came through the hole while it was dark."""

    segments: NonNegativeInt | None = None
    rst: NonNegativeInt | None = None
    fin: NonNegativeInt | None = None
    icmp: NonNegativeInt | None = None


class Observed(_Part):
    """What was seen."""

    client: EndObservation = EndObservation()
    server: EndObservation = EndObservation()
    bystander: Bystander = Bystander()
    reconnected: bool | None = None
    """Whether a new connection of the lab's own was set up while the old one was dark; None where the lab itself tried
    none. Connections of the user's own programs are not counted."""

    crossed: Crossed = Crossed()


class RealWorld(_Part):
    """The same case with nothing compressed: what the applied branches would be with ``settings``."""

    settings: str | None = None
    """What is meant by real, in words: "Linux defaults (tcp_retries2=15, rto_max 120 s)"."""

    client: Branch | None = None
    server: Branch | None = None


class Check(_Part):
    """One proof that the run owes, and whether it holds."""

    name: str
    ok: bool
    detail: str = ""


class Record(_Part):
    """One run."""

    schema_number: Literal[1] = Field(default=SCHEMA, validation_alias="schema", serialization_alias="schema")
    outcome: Outcome
    reason: str | None = None
    """One sentence on why the outcome is what it is; always there when it is not confirmed. A confirmed run has one
    where a program closed the flow before its kernel would have given up."""

    disturbed: bool = False
    """Whether it is INVALID for reasons that a busy machine can cause, so that it is worth repeating."""

    interrupted: bool = False
    """Whether the run was ended from outside (Ctrl-C) before it knew."""

    started_at: FiniteFloat | None = None
    """Unix time, seconds."""

    horizon_s: FiniteFloat | None = None
    """How long was watched after the cut."""

    backend: str
    """netns or docker."""

    versions: Versions = Versions()
    settings: Settings = Settings()
    sockets: Sockets = Sockets()
    fault: FaultRecord = FaultRecord()
    flow: FlowRecord = FlowRecord()
    uplink: UplinkRecord | None = None
    """None where the server was in the testbed."""

    prediction: Prediction = Prediction()
    observation: Observed = Observed()
    real_world: RealWorld | None = None
    counters: dict[str, dict[str, int]] = {}
    """Per node, how far each kernel counter moved during the run; counters that stood still are left out."""

    checks: tuple[Check, ...] = ()
    artefacts: tuple[str, ...] = ()
    """Paths relative to the run folder."""

    @model_validator(mode="after")
    def _no_pass_without_proof(self) -> Self:
        """A record can be wrong in many ways; this one would be a wrong pass."""
        failed = [check.name for check in self.checks if not check.ok]
        if self.outcome is Outcome.CONFIRMED and failed:
            msg = f"a confirmed run cannot have failed checks: {', '.join(failed)}"
            raise ValueError(msg)
        if self.outcome is Outcome.CONFIRMED and not self.checks:
            msg = "a confirmed run must list the checks that it passed"
            raise ValueError(msg)
        return self

    @property
    def ends_unresolved(self) -> tuple[str, ...]:
        """Ends whose fate was open when the watch ended: alive, and their window had not closed (or never does)."""
        ends = (
            ("client", self.prediction.client.branch, self.observation.client),
            ("server", self.prediction.server.branch, self.observation.server),
        )
        return tuple(
            name
            for name, branch, seen in ends
            if branch is not None
            and seen.gave_up_s is None
            and seen.recovered_s is None
            and _open(branch, self.horizon_s)
        )

    @property
    def ends_closed(self) -> tuple[str, ...]:
        """Ends whose program closed the flow while it was dark, so that its kernel was not put to its last test."""
        healed_s = self.fault.healed_s
        ends = (
            ("client", self.prediction.client.branch, self.observation.client),
            ("server", self.prediction.server.branch, self.observation.server),
        )
        return tuple(
            name
            for name, branch, seen in ends
            if branch is not None
            and seen.closed_s is not None
            and seen.gave_up_s is None
            and (healed_s is None or seen.closed_s < healed_s)
        )

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The record as indented JSON with a newline at its end; the same record gives the same text."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


def _open(branch: Branch, horizon_s: float | None) -> bool:
    return branch.window_s is None or horizon_s is None or branch.window_s[1] > horizon_s
