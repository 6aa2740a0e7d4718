"""What a remote can ask."""

from dataclasses import dataclass


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
