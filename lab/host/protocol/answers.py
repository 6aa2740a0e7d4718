"""What a host can answer, each to one of ``asks``."""

from dataclasses import dataclass

from lab.host.protocol.values import AgentState, ChatItem, UserState, Verdict


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
