"""What a session of the study is made of, and what is expected of it.

A scenario says how the connection is lost and what the assistant does about it; a variant is its script, once with
real waits and once with the long ones lapsed. Expectations were written down before the first run: the study's numbers
where it gives some, the lab's own prediction where it does not.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Step = Mapping[str, Any]
"""One step of the assistant's script, as JSON; ``do`` names its kind."""


class Loss(enum.Enum):
    """How the connection is lost, and so who causes it."""

    NONE = "none"
    """It is not lost, or the server ends it."""

    ABORT = "abort"
    """The client's program closes its socket without a close frame, which the server sees as a FIN or a reset."""

    CLOSE = "clean close"
    """The client's program closes it, code 1000."""

    FREEZE = "freeze proxy"
    """A proxy in the router forwards nothing; both kernels keep acknowledging."""

    PACKET_LOSS = "packet loss"
    """The flow's packets vanish in the router, both ways; a full run of the lab with its proofs."""

    ADDRESS = "change of address"
    """The client's address is taken away and it gets another: the old four-tuple never comes back."""

    @property
    def silent(self) -> bool:
        """Whether nobody is told."""
        return self in (Loss.FREEZE, Loss.PACKET_LOSS, Loss.ADDRESS)


class Mark(enum.Enum):
    """What the assistant's ``mark`` event asks of whoever runs the session, at once."""

    CUT = "cut"
    HEAL = "heal"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    MOVE_ADDRESS = "move-address"


class Group(enum.Enum):
    """Where a scenario belongs in the tables."""

    ROUND_1 = "round 1: aborts and closes"
    ROUND_2 = "round 2: the freeze proxy"
    ROUND_3 = "round 3: packet loss"
    STAGE_2 = "stage 2: the recovery"
    NEW = "new ground"
    SWEEP = "when an idle abort frees the session"


class Quantity(enum.Enum):
    """What is read from a session's events; times in session seconds."""

    REFUSED = "resume attempts refused with 1011"
    ACCEPTED = "resume attempts accepted"
    REFUSAL_S = "time to the refusal"
    ACCEPTANCE_S = "time from the accepted attempt to its setup"
    RESUMED_S = "time from the loss to the resumed session"
    DETECTED_S = "time from the loss to its detection"
    CONSISTENT = "answer agrees with the backend"
    BOOKINGS = "bookings made"
    REISSUED = "calls issued again with a new id"
    REISSUED_AFTER_S = "time from the restore to the call issued again"
    WINDOW_S = "time from detection to the end of the resume window"
    FALLBACK_S = "time from the loss to the new session"
    NEW_SETUP_S = "time that the new session's setup took"
    SPEAKS_AFTER_S = "time from the restore to the first audio"
    FIRST_AUDIO_S = "time from the loss to the first audio"
    CLOSE_ECHO_S = "time from the close on the old connection to its echo"
    RESULT_AGE_S = "age of the call when its result was accepted"
    ANNOUNCED_S = "time from the result to the model's announcement"
    BEHIND_S = "time from the commit to an answer that does not know of it"
    STILL_BOOKING_S = "time from the commit to a restored model's word that it is still booking"
    SILENT_UNTIL_S = "time from the loss to the server's first segment"
    COPIES = "copies of the server's first lost segment"
    LAST_COPY_S = "time from the loss to the last copy"
    SETUP_CLOSED = "close code of a refused setup"
    ANSWERED = "questions that the user got an answer to"
    UPDATED = "update notes sent after the restore"
    HEARD_AGAIN = "utterances heard that were spoken in the gap"
    GAVE_UP = "recoveries that ended without a session"
    GAVE_UP_AT_LIMIT = "recoveries that the limit refused to the end"
    DEAD_CODE = "close code that the path brought when it came back"
    REFUSED_AT_S = "when refused attempts began, from the loss"
    ACCEPTED_AT_S = "when accepted attempts began, from the loss"

    @property
    def timed(self) -> bool:
        """Whether it is a duration in seconds."""
        return self.name.endswith("_S")


class Over(enum.Enum):
    """What of all the sessions' times must lie in the range."""

    EACH = "each"
    MEDIAN = "median"


class Origin(enum.Enum):
    """Who said so."""

    STUDY = "study"
    LAB = "the lab, before its first run"


@dataclass(frozen=True, slots=True)
class Count:
    """How often something happens, exactly."""

    quantity: Quantity
    per_session: tuple[int, ...]
    """In the k-th session, round and round as the scripts."""

    source: str
    """The row of the study's table, or the rule that the prediction follows from."""

    origin: Origin = Origin.STUDY

    def of(self, session: int) -> int:
        """What is expected of the n-th session, from 0."""
        return self.per_session[session % len(self.per_session)]


@dataclass(frozen=True, slots=True)
class Range:
    """Where a time, or another number, lies."""

    quantity: Quantity
    low: float
    high: float
    source: str
    """The row of the study's table, or the rule that the prediction follows from."""

    over: Over = Over.EACH
    origin: Origin = Origin.STUDY
    slack: float = 0.0
    """How far outside is still as modelled; such a value is reported as outside of the range, with ``why``."""

    why: str = ""
    """What makes ours differ from the study's."""

    slack_above: float | None = None
    """The same above the range, where the reason bears on one side more than on the other; None: ``slack``."""

    digits: int = 3
    """As many decimals as the source gives; values are judged when rounded to them."""

    def __post_init__(self) -> None:
        """Refuse ranges that nothing lies in, and tolerances without a reason.

        Raises:
            ValueError: it is one of them.
        """
        if self.low > self.high or self.slack < 0 or (self.slack_above or 0) < 0:
            raise ValueError(f"No range: {self.low} to {self.high}, give or take {self.slack}.")
        if (self.slack or self.slack_above) and not self.why:
            raise ValueError(f"{self.quantity.value}: a tolerance needs a reason.")


Expected = Count | Range


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The session server."""

    profile: str = "gemini-3.8-live-2026-10"
    settings: Mapping[str, object] = field(default_factory=dict)
    """Fields of the profile that differ, as ``--set FIELD=VALUE``."""


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """The assistant's bookings."""

    commit_after_s: float = 4.0
    """Session seconds from the call to the commit."""

    unique: bool = False
    """Whether the table refuses a second booking under the same business key. Off, so that nothing but the client's
    ledger stands between a call that is issued again and a second booking."""


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """The nodes' TCP."""

    profile: str = "study-server"
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per node, on top of the profile."""

    factor: float = 1.0
    """How many seconds of the study's server one second of this TCP's back-off stands for."""


LAPSED_KERNEL = KernelPlan(
    sysctls={
        "server": {
            "net.ipv4.tcp_rto_max_ms": "1000",
            "net.ipv4.tcp_rto_min_us": "6700",
            "net.ipv4.tcp_retries2": "5",
        }
    },
    factor=30.0,
)
"""The study's server thirty times as fast (study.md, "The server's TCP"): ten copies, gone after 4.7 s."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One script, and the TCP that goes with it."""

    steps: tuple[Step, ...]
    limit_s: float
    """Wall seconds after which the session is given up as INVALID; well beyond what it takes."""

    kernel: KernelPlan = field(default_factory=KernelPlan)
    longest_s: float = 15.0
    """Wall seconds that it takes, roughly: the longest ones are started first."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One row of the table; it equals itself alone, for its steps are objects of JSON, which cannot be hashed."""

    id: str
    """As in the study: R1, BR1-no-note."""

    title: str
    """What is lost how, and what is done about it, in a line."""

    n: int
    """How many sessions the study ran; how many the lab runs by default."""

    group: Group
    loss: Loss
    lapsed: tuple[Variant, ...]
    """With the long waits lapsed; the k-th session takes the k-th one, round and round."""

    expects: tuple[Expected, ...]
    real: tuple[Variant, ...] = ()
    """With real waits; empty where the lapsed ones have no lapse in them."""

    expects_lapsed: tuple[Expected, ...] = ()
    """What a lapse changes: these take the place of those for the same quantity."""

    study: str = ""
    """What the study saw, in its figures; empty where it did not look."""

    prediction: str = ""
    """What the lab said before its first run of a scenario that the study does not have."""

    server: ServerPlan = field(default_factory=ServerPlan)
    backend: BackendPlan = field(default_factory=BackendPlan)
    policy: Mapping[str, object] = field(default_factory=dict)
    """Fields of the recovery policy that differ from its defaults."""

    replay_speech: bool = False
    """Whether what is said in the gap is buffered and said again after it."""

    wrong_on_purpose: str = ""
    """What is wrong, where the scenario shows a mistake; nothing else may double-book."""

    brief: int | None = None
    """How many sessions are run where time is short; None for all ``n``."""

    minutes: bool = False
    """Whether real waits take a quarter of an hour, so that only ``--full`` has them."""

    @property
    def published(self) -> bool:
        """Whether the study has this row."""
        return self.group not in (Group.NEW, Group.SWEEP)

    def variant(self, session: int, *, real: bool) -> Variant:
        """The script of the n-th session, from 0."""
        scripts = self.real if real and self.real else self.lapsed
        return scripts[session % len(scripts)]

    def expected(self, *, real: bool) -> tuple[Expected, ...]:
        """What is expected with real or with lapsed waits."""
        if real or not self.expects_lapsed:
            return self.expects
        instead = {each.quantity for each in self.expects_lapsed}
        return (*(each for each in self.expects if each.quantity not in instead), *self.expects_lapsed)

    def with_(self, **changes: object) -> "Scenario":
        """The same with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]  # names and types are the dataclass's own
