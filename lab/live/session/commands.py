"""What the sessions want done, and what they want written down."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.live.protocol.messages import ServerMessage


class Audit(enum.StrEnum):
    """What a note tells; together the notes account for every decision of a server."""

    OPENED = "opened"
    ATTACH = "attach"
    """A setup was accepted: connection, session, resumed, state."""

    READY = "ready"
    """Its setupComplete was sent."""

    REFUSED = "refused"
    """A setup was refused: code, reason, cause, after_s (until the close), handle (its beginning)."""

    DETACH = "detach"
    """A connection is gone: how, detail, session, state."""

    STATE = "state"
    """A session changed by the server's own clock: session, state, because."""

    CLOSED = "closed"
    """The server closed a connection: code, reason, because."""

    HEARD = "heard"
    """What a recogniser made of speech: session, text."""

    TYPED = "typed"
    """What was typed in place of speech: session, text."""

    UNKNOWN_RESULT = "unknown result"
    """A response for a call that was never made: session, ids."""

    OLD_RESULT = "old result"
    """A response for a call of a former connection, dropped: session, ids."""

    UNSENT = "unsent"
    """What was to be sent while nobody was there, such as a late transcript: session, messages."""

    GO_AWAY = "go away"


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message."""

    connection: int
    message: ServerMessage


@dataclass(frozen=True, slots=True)
class Close:
    """Send a close frame; nothing is sent after it. ``House.detach`` tells how that ended."""

    connection: int
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Recognise:
    """Find out what was said, and give it to ``House.heard``."""

    session_id: str
    pcm: bytes
    """16 kHz, 16 bits, one channel."""


@dataclass(frozen=True, slots=True)
class Note:
    """Write this down."""

    event: Audit
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, text, None, and lists of them."""


Command = Send | Close | Recognise | Note
