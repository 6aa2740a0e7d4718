"""What is said between a session host and its remote, as values.

Names of fields are those of ``agent_session.proto``, which has their numbers. What messages are made of has modules of
its own, ``asks``, ``answers``, ``events`` and ``values``; all of it can be had from here.
"""

from dataclasses import dataclass

from lab.host.protocol.answers import (
    AgentInfo,
    Answer,
    ChatHistory,
    Finalized,
    FrameworkInfo,
    IoUpdated,
    Pong,
    RtcStats,
    RunResult,
    SessionState,
    SessionUsage,
)
from lab.host.protocol.asks import (
    Ask,
    FinalizeSimulation,
    GetAgentInfo,
    GetChatHistory,
    GetFrameworkInfo,
    GetRtcStats,
    GetSessionState,
    GetSessionUsage,
    IoInput,
    IoOutput,
    Ping,
    RunInput,
    UpdateIo,
)
from lab.host.protocol.events import (
    AgentFalseInterruption,
    AgentStateChanged,
    ErrorTold,
    EventBody,
    ItemAdded,
    SessionClosed,
    Unread,
    UserInputTranscribed,
    UserStateChanged,
)
from lab.host.protocol.values import (
    AgentState,
    ChatContent,
    ChatItem,
    ChatMessage,
    ChatRole,
    CloseReason,
    UserState,
    Verdict,
    said,
)

__all__ = [
    "AgentFalseInterruption",
    "AgentInfo",
    "AgentState",
    "AgentStateChanged",
    "Answer",
    "Ask",
    "AudioFrame",
    "AudioInput",
    "AudioOutput",
    "ChatContent",
    "ChatHistory",
    "ChatItem",
    "ChatMessage",
    "ChatRole",
    "CloseReason",
    "ErrorTold",
    "Event",
    "EventBody",
    "FinalizeSimulation",
    "Finalized",
    "FrameworkInfo",
    "GetAgentInfo",
    "GetChatHistory",
    "GetFrameworkInfo",
    "GetRtcStats",
    "GetSessionState",
    "GetSessionUsage",
    "IoInput",
    "IoOutput",
    "IoUpdated",
    "ItemAdded",
    "Message",
    "Ping",
    "PlaybackClear",
    "PlaybackFinished",
    "PlaybackFlush",
    "Pong",
    "Request",
    "Response",
    "RtcStats",
    "RunInput",
    "RunResult",
    "SessionClosed",
    "SessionState",
    "SessionUsage",
    "Unread",
    "UpdateIo",
    "UserInputTranscribed",
    "UserState",
    "UserStateChanged",
    "Verdict",
    "said",
]


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
class Event:
    """Something happened at the host."""

    body: EventBody | None
    """None: a later version's, which this side does not know."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question of the remote."""

    request_id: str
    """The remote's; its answer has the same."""

    ask: Ask | None
    """None: a later version's, which this side does not know."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request: an error, or what was asked for."""

    request_id: str
    answer: Answer | None = None
    error: str | None = None


Message = AudioInput | AudioOutput | Event | Request | Response | PlaybackFlush | PlaybackClear | PlaybackFinished
