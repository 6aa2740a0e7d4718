"""Who is let in: the lock of a session, and the limit on sessions at once."""

import enum

from lab.live.protocol import closing
from lab.live.protocol.closing import Closing
from lab.live.session.profile import DeadHandle, Profile
from lab.live.session.states import State


class Refusal(enum.Enum):
    """Why a setup is refused. A client does not learn which: that would tell handles that exist from others."""

    ATTACHED = "attached"
    """Another connection has the session."""

    HELD = "held"
    SETTLING = "settling"
    DEAD = "dead"
    UNKNOWN = "unknown"
    """The handle names nothing, or nothing any more."""

    LIMIT = "limit"
    """Too many sessions at once."""


_BY_STATE = {
    State.ATTACHED: Refusal.ATTACHED,
    State.HELD: Refusal.HELD,
    State.SETTLING: Refusal.SETTLING,
    State.DEAD: Refusal.DEAD,
    State.ENDED: Refusal.UNKNOWN,
}


def decide(profile: Profile, *, resumes: bool, state: State | None, counted: int) -> Refusal | None:
    """Whether a setup is refused, and why; None lets it in.

    The session's lock comes first, so that a limit says nothing about handles.

    Args:
        profile: How the server behaves.
        resumes: The setup has a handle.
        state: Of the session that the handle names, None where it names none.
        counted: Locked sessions.
    """
    if resumes and state is None:
        return Refusal.UNKNOWN
    if state is not None and state in _BY_STATE:
        return _BY_STATE[state]
    return Refusal.LIMIT if full(profile, counted) else None


def full(profile: Profile, counted: int) -> bool:
    """Whether one session more were too many."""
    return profile.concurrent_limit is not None and counted >= profile.concurrent_limit


def sentence(refusal: Refusal, profile: Profile) -> Closing:
    """How a refusal is put on the wire."""
    if refusal is Refusal.LIMIT:
        return closing.EXHAUSTED
    if refusal in {Refusal.DEAD, Refusal.UNKNOWN} and profile.dead_handle_code is DeadHandle.INVALID_1007:
        return closing.INVALID_ARGUMENT
    return closing.INTERNAL_ERROR
