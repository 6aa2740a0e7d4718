"""What can happen at a host, as its remote is told."""

from dataclasses import dataclass

from lab.host.protocol.values import AgentState, ChatItem, CloseReason, UserState


@dataclass(frozen=True, slots=True)
class AgentStateChanged:
    """The agent does something else."""

    old_state: AgentState = AgentState.INITIALIZING
    new_state: AgentState = AgentState.INITIALIZING


@dataclass(frozen=True, slots=True)
class UserStateChanged:
    """The user does something else."""

    old_state: UserState = UserState.SPEAKING
    new_state: UserState = UserState.SPEAKING


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """The conversation has an item more."""

    item: ChatItem | None = None


@dataclass(frozen=True, slots=True)
class UserInputTranscribed:
    """What the user was heard to say."""

    transcript: str = ""
    is_final: bool = False
    language: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorTold:
    """Something went wrong at the host: in the session, or with what the remote sent."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class AgentFalseInterruption:
    """The agent was interrupted by what was no speech."""

    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session is over; no event of it comes after this one."""

    reason: CloseReason = CloseReason.UNKNOWN
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """An event of the set whose body is not looked into."""

    name: str
    """Its field's."""


EventBody = (
    AgentStateChanged
    | UserStateChanged
    | ItemAdded
    | UserInputTranscribed
    | ErrorTold
    | AgentFalseInterruption
    | SessionClosed
    | Unread
)
