"""What a server shows of its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.live.session.session import Session
from lab.live.session.transcript import Turn

SHOWN = 8
"""Characters of a handle that are shown: enough to find it in a log, too few to resume with it."""


@dataclass(frozen=True, slots=True)
class CallStatus:
    """A call that awaits its response."""

    id: str
    name: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """One session at an instant."""

    id: str
    state: str
    locked: bool
    """A resume is refused, and it counts against the limit."""

    handle: str | None
    """The first characters of its latest name."""

    connection: int | None
    connections: int
    """How many it has had."""

    in_state_s: float
    silent_s: float
    """Since the last message in either direction."""

    closes_in_s: float | None
    """Until the server's own close, if nothing is said."""

    refused: int
    """Resumes refused because of the present connection."""

    audio_s: float
    """Audio received."""

    speaking: bool
    pending: tuple[CallStatus, ...]
    transcript: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class HouseStatus:
    """A server at an instant."""

    profile: str
    now: float
    """Session seconds."""

    connections: int
    counted: int
    """Sessions that count against the limit, those included whose client is long gone."""

    limit: int | None
    refused: Mapping[str, int]
    """Setups and upgrades refused so far, by cause."""

    sessions: tuple[SessionStatus, ...]
    """Those that live, and the latest that do not."""


def session_status(session: Session, *, now: float) -> SessionStatus:
    """One session as it is now."""
    conversation = session.conversation
    model = conversation.model
    return SessionStatus(
        id=session.name,
        state=session.state.value,
        locked=session.locked,
        handle=session.handles[-1][:SHOWN] if session.handles else None,
        connection=session.connection.number if session.connection is not None else None,
        connections=session.attached,
        in_state_s=now - session.since,
        silent_s=now - session.last_message_at,
        closes_in_s=session.closes_at - now if session.closes_at is not None else None,
        refused=session.awaited,
        audio_s=conversation.hearing.audio_s,
        speaking=model.speaking,
        pending=tuple(CallStatus(name, call.name, call.args) for name, call in model.pending.items()),
        transcript=conversation.transcript.turns,
    )
