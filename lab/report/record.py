"""The record of one run: what was set, done, predicted, seen and checked. ``record.json`` is this, as JSON.

Every key but ``schema``, ``outcome`` and ``backend`` may be empty, so that a run can write a truthful record at any
moment of its life. Times are seconds from the cut and None means "did not happen", unless a field says otherwise.
Keys that this version does not know are kept when a record is read and written again.
"""

from typing import Any, Literal, Self

from pydantic import Field, FiniteFloat, NonNegativeInt, model_validator

from lab.core.fault import Cut, Placement, Scope
from lab.core.prediction import Cause as Cause
from lab.core.verdict import Outcome as Outcome
from lab.report.record_observation import Bystander as Bystander
from lab.report.record_observation import Crossed as Crossed
from lab.report.record_observation import EndObservation as EndObservation
from lab.report.record_observation import NoticedBy as NoticedBy
from lab.report.record_observation import Observed as Observed
from lab.report.record_observation import OrphanObservation as OrphanObservation
from lab.report.record_part import Part
from lab.report.record_prediction import Activity as Activity
from lab.report.record_prediction import Branch as Branch
from lab.report.record_prediction import EndPrediction as EndPrediction
from lab.report.record_prediction import Prediction as Prediction

SCHEMA: Literal[1] = 1
"""Number of the record's format; additions keep it, a changed meaning raises it."""


class Versions(Part):
    """What ran."""

    lab: str | None = None
    kernel: str | None = None
    python: str | None = None
    libraries: dict[str, str] = {}
    tools: dict[str, str] = {}


class Settings(Part):
    """Kernel settings that the outcome depends on, as read back from each node."""

    profile: str | None = None
    """Name or path of the profile; None where none was asked for."""

    client: dict[str, str] = {}
    router: dict[str, str] = {}
    server: dict[str, str] = {}
    hz: int | None = None
    """Timer ticks per second (CONFIG_HZ); None where the kernel does not tell."""


class SocketFacts(Part):
    """What was measured on one end's socket before the cut; the prediction was made from it."""

    srtt_s: FiniteFloat | None = None
    rttvar_s: FiniteFloat | None = None
    rto_s: FiniteFloat | None = None
    options: dict[str, bool | int | FiniteFloat | None] | None = None
    """Fields of ``lab.core.socket.SocketOptions``; None where the owner's descriptor could not be read."""


class Sockets(Part):
    """Both ends' sockets before the cut."""

    client: SocketFacts = SocketFacts()
    server: SocketFacts = SocketFacts()


class MatchedPackets(Part):
    """Packets that the fault's rules dropped, counted by the router's kernel."""

    forward: NonNegativeInt | None = None
    return_: NonNegativeInt | None = Field(default=None, validation_alias="return", serialization_alias="return")


class FaultRecord(Part):
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


class FlowRecord(Part):
    """The flow that was cut, each end as "address:port" (IPv6 addresses in brackets)."""

    client: str | None = None
    server: str | None = None


class UplinkRecord(Part):
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


class RealWorld(Part):
    """The same case with nothing compressed: what the applied branches would be with ``settings``."""

    settings: str | None = None
    """What is meant by real, in words: "Linux defaults (tcp_retries2=15, rto_max 120 s)"."""

    client: Branch | None = None
    server: Branch | None = None


class Check(Part):
    """One proof that the run owes, and whether it holds."""

    name: str
    ok: bool
    detail: str = ""


class Record(Part):
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
