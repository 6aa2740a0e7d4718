"""What the machines want done."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.host.protocol.messages import Answer, Ask, CloseReason, Event, FinalizeSimulation, Message, Verdict


class Audit(enum.StrEnum):
    """What a note tells."""

    DROPPED = "dropped"
    """A request that a defective host does not answer: request, why."""

    UNASKED = "unasked"
    """A response without a request, or a second one: request."""

    MALFORMED = "malformed"
    """What came is no message: error."""

    IGNORED = "ignored"
    """An event that this side does not know, or a message that means nothing to it."""

    LATE = "late"
    """What a session said after it was detached: session, what."""

    UNSENT = "unsent"
    """A message that the transport, which stands, did not take: what, error."""

    FAILED = "failed"
    """What the user gave to be called raised: what, error."""

    STATE = "state"
    """The machine changed: state, because."""


@dataclass(frozen=True, slots=True)
class Note:
    """Write this down."""

    event: Audit
    fields: Mapping[str, Any] = field(default_factory=dict)


Notes = Callable[[Note], None]
"""Takes what is to be written down."""


def unwritten(_note: Note) -> None:
    """Write it nowhere."""


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message."""

    message: Message


@dataclass(frozen=True, slots=True)
class AskSession:
    """Let a session answer; ``HostMachine.answered`` takes what it says."""

    session: str
    request_id: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class AskJob:
    """Let the job answer; ``HostMachine.answered`` takes what it says."""

    request_id: str
    ask: FinalizeSimulation


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody waits for this answer any more."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Write what is queued, and tell ``flushed``."""

    request_id: str | None = None
    """Whose answer is the last of it; None for all that there is, before the transport goes."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Tell the job whether its answer went out."""

    request_id: str
    delivered: bool


@dataclass(frozen=True, slots=True)
class CloseTransport:
    """End it, and take nothing more from it."""

    by: float | None = None
    """When it is ended without waiting for the other side, seconds; None for now."""


HostCommand = Note | Send | AskSession | AskJob | Forget | Flush | Delivered | CloseTransport


class Outcome(enum.Enum):
    """How a request of the remote ended."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """With an error of the host's."""

    TIMED_OUT = "timed out"
    LOST = "lost"
    """The transport was gone before the answer."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Tell who waits for an answer; once for each request."""

    request_id: str
    outcome: Outcome
    answer: Answer | None = None
    """None for an answer without a body that this side knows."""

    error: str = ""


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell who listens to events."""

    event: Event


@dataclass(frozen=True, slots=True)
class Dead:
    """The host has been silent for too long: give the transport up."""

    silent_s: float


RemoteCommand = Note | Send | Settle | Emit | Dead


@dataclass(frozen=True, slots=True)
class Register:
    """Attach a session to the job's host."""

    session: str


@dataclass(frozen=True, slots=True)
class MakeHost:
    """Give a session of another room a host of its own."""

    session: str
    room: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close a session."""

    session: str
    reason: CloseReason


@dataclass(frozen=True, slots=True)
class TellClosed:
    """Let the host of a session that did not close tell its end all the same."""

    session: str
    reason: CloseReason
    error: str | None


@dataclass(frozen=True, slots=True)
class CloseHost:
    """Drain and close a host: a session's own, or the job's."""

    session: str | None = None
    """None for the job's; either's end is to be told to ``host_closed``."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Run the user's ``on_simulation_end``, and tell ``judged``."""

    provisional: Verdict


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request of the simulator's, and tell ``replied`` whether that could be sent."""

    request_id: str
    verdict: Verdict | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteRoom:
    """Delete a room; whoever is in it is thrown out."""

    room: str


JobCommand = Note | Register | MakeHost | CloseSession | TellClosed | CloseHost | Judge | Reply | DeleteRoom
