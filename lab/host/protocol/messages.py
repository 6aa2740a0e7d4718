"""What is said between a session host and its remote, as values.

Names of fields are those of ``agent_session.proto``, which has their numbers.
"""

from dataclasses import dataclass
from enum import IntEnum


class CloseReason(IntEnum):
    """Why a session ended, as it is told."""

    UNKNOWN = 0
    ERROR = 1
    JOB_SHUTDOWN = 2
    PARTICIPANT_DISCONNECTED = 3
    USER_INITIATED = 4
    COMPLETED = 5


class AgentState(IntEnum):
    """What an agent does."""

    INITIALIZING = 0
    IDLE = 1
    LISTENING = 2
    THINKING = 3
    SPEAKING = 4


class UserState(IntEnum):
    """What the user does."""

    SPEAKING = 0
    LISTENING = 1
    AWAY = 2


class ChatRole(IntEnum):
    """Who said something."""

    DEVELOPER = 0
    SYSTEM = 1
    USER = 2
    ASSISTANT = 3


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A piece of audio, 16 bits a sample."""

    data: bytes = b""
    sample_rate: int = 0
    """Hz."""

    num_channels: int = 0
    samples_per_channel: int = 0


@dataclass(frozen=True, slots=True)
class AudioInput(AudioFrame):
    """The user's voice, to the agent."""


@dataclass(frozen=True, slots=True)
class AudioOutput(AudioFrame):
    """The agent's voice."""


@dataclass(frozen=True, slots=True)
class PlaybackFlush:
    """All audio of an utterance was sent."""


@dataclass(frozen=True, slots=True)
class PlaybackClear:
    """Drop what was not played yet."""


@dataclass(frozen=True, slots=True)
class PlaybackFinished:
    """An utterance was played."""


@dataclass(frozen=True, slots=True)
class ChatContent:
    """A piece of what was said."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """What somebody said."""

    id: str = ""
    role: ChatRole = ChatRole.USER
    content: tuple[ChatContent, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ChatItem:
    """An item of a conversation; one that is no message is not looked into."""

    message: ChatMessage | None = None


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


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened at the host."""

    body: EventBody | None
    """None: a later version's, which this side does not know."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Are you there?"""


@dataclass(frozen=True, slots=True)
class GetChatHistory:
    """What was said so far?"""


@dataclass(frozen=True, slots=True)
class RunInput:
    """A user's turn, as text."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class GetAgentInfo:
    """Who is the agent?"""


@dataclass(frozen=True, slots=True)
class GetSessionState:
    """What do agent and user do?"""


@dataclass(frozen=True, slots=True)
class GetRtcStats:
    """Statistics of the media connection."""


@dataclass(frozen=True, slots=True)
class GetSessionUsage:
    """What did it cost so far?"""


@dataclass(frozen=True, slots=True)
class GetFrameworkInfo:
    """What does the host run on?"""


@dataclass(frozen=True, slots=True)
class IoInput:
    """What the agent takes; None leaves it as it is."""

    audio_enabled: bool | None = None
    video_enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class IoOutput:
    """What the agent gives; None leaves it as it is."""

    audio_enabled: bool | None = None
    video_enabled: bool | None = None
    transcription_enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class UpdateIo:
    """Turn inputs and outputs on or off."""

    input: IoInput | None = None
    output: IoOutput | None = None


@dataclass(frozen=True, slots=True)
class FinalizeSimulation:
    """The simulation is over; what does the agent's author make of it?"""

    provisional_success: bool = False
    provisional_reason: str = ""


Ask = (
    Ping
    | GetChatHistory
    | RunInput
    | GetAgentInfo
    | GetSessionState
    | GetRtcStats
    | GetSessionUsage
    | GetFrameworkInfo
    | UpdateIo
    | FinalizeSimulation
)


@dataclass(frozen=True, slots=True)
class Request:
    """A question of the remote."""

    request_id: str
    """The remote's; its answer has the same."""

    ask: Ask | None
    """None: a later version's, which this side does not know."""


@dataclass(frozen=True, slots=True)
class Pong:
    """To ``Ping``."""


@dataclass(frozen=True, slots=True)
class ChatHistory:
    """To ``GetChatHistory``."""

    items: tuple[ChatItem, ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """To ``RunInput``: what the turn added."""

    items: tuple[ChatItem, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """To ``GetAgentInfo``."""

    id: str = ""
    instructions: str | None = None
    tools: tuple[str, ...] = ()
    chat_ctx: tuple[ChatItem, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionState:
    """To ``GetSessionState``."""

    agent_state: AgentState = AgentState.INITIALIZING
    user_state: UserState = UserState.SPEAKING
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class RtcStats:
    """To ``GetRtcStats``; its figures are not looked into."""


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """To ``GetSessionUsage``; its figures are not looked into."""


@dataclass(frozen=True, slots=True)
class FrameworkInfo:
    """To ``GetFrameworkInfo``."""

    sdk: str = ""
    sdk_version: str = ""


@dataclass(frozen=True, slots=True)
class IoUpdated:
    """To ``UpdateIo``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a simulation went well."""

    success: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finalized:
    """To ``FinalizeSimulation``."""

    user_verdict: Verdict | None = None
    """None: the agent's author gave none."""


Answer = (
    Pong
    | ChatHistory
    | RunResult
    | AgentInfo
    | SessionState
    | RtcStats
    | SessionUsage
    | FrameworkInfo
    | IoUpdated
    | Finalized
)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request: an error, or what was asked for."""

    request_id: str
    answer: Answer | None = None
    error: str | None = None


Message = AudioInput | AudioOutput | Event | Request | Response | PlaybackFlush | PlaybackClear | PlaybackFinished


def said(role: ChatRole, text: str, *, id: str = "") -> ChatItem:  # noqa: A002 -- the set's own name
    """An item that is a message of one piece."""
    return ChatItem(ChatMessage(id, role, (ChatContent(text),)))
