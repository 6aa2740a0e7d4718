"""What several messages hold: who said what, who does what, why a session ended, and how a simulation went."""

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
class Verdict:
    """Whether a simulation went well."""

    success: bool = False
    reason: str = ""


def said(role: ChatRole, text: str, *, id: str = "") -> ChatItem:  # noqa: A002 -- the set's own name
    """An item that is a message of one piece."""
    return ChatItem(ChatMessage(id, role, (ChatContent(text),)))
