"""What the policy tells its shell to do, in the order in which it says it.

A connection is known by its attempt: 0 is the first one of all, each further dial gets the next number, for good.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

NORMAL_CLOSURE = 1000
"""RFC 6455 section 7.4.1. The one code by which a client says that it is done; it frees a session that the server still
holds for the old connection."""

Fact = str | int | float | bool | None


class Happening(enum.StrEnum):
    """What a report can be about."""

    LOST = "lost"
    """The adopted connection; ``by``, ``handle`` (whether there is one)."""

    REFUSED = "refused"
    """The server closed an attempt before it was ready: ``code``, ``reason``, ``took_s``, ``resume``."""

    FAILED = "failed"
    """An attempt came to nothing otherwise: ``why``, ``took_s``, ``resume``."""

    ABANDONED = "abandoned"
    """An attempt is given up while it is open: ``why``, ``took_s``, ``resume``."""

    LATE = "late"
    """An attempt that nobody waits for became ready."""

    HANDLE_DEAD = "handle-dead"
    """The server will never resume by this handle: ``code``."""

    PATH_BACK = "path-back"
    OLD_CLOSED = "old-closed"
    """``echoed``: whether the server answered the close."""

    FALLBACK = "fallback"
    """No more resuming: ``why``."""

    ADOPTED = "adopted"
    """``resumed``, ``since_lost_s``, ``attempts`` (dialled since the loss)."""

    GIVEN_UP = "given-up"
    """``why``, ``since_lost_s``, ``attempts``."""

    CLOSED = "closed"
    """As the user wanted."""


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a connection and send its setup; answer with ``ready``, ``refused`` or ``failed``."""

    attempt: int
    handle: str | None
    """The session to resume; None asks for a new one."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Be rid of an attempt that is open, or became ready after another one won.

    Close it with this code as soon as it can carry a close, in the background, and abort it if that takes long. The
    server may have taken the setup already: what is only forgotten here stays attached there. May come twice.
    """

    attempt: int
    code: int = NORMAL_CLOSURE


@dataclass(frozen=True, slots=True)
class CloseOld:
    """Queue a close on a connection that was adopted once, without waiting; tell of its end by ``old_closed``.

    On a dead path it never leaves. It comes again when the path is back; then the one that was queued is as good, if
    the socket still has it.
    """

    attempt: int
    code: int = NORMAL_CLOSURE


@dataclass(frozen=True, slots=True)
class Adopt:
    """From now on the conversation runs here."""

    attempt: int
    resumed: bool
    """The server's session went on: results are due under their old ids. Else it knows nothing yet."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Send the history to a new session, right after it was adopted."""

    attempt: int
    note: bool
    """With the status note; without it a model repeats what it believes undone."""


@dataclass(frozen=True, slots=True)
class Report:
    """Something to be logged, shown or counted; no failure passes without one."""

    event: Happening
    fields: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing more will be tried: tell the user."""

    reason: str
    """A sentence's worth, for people."""


Command = Dial | Abandon | CloseOld | Adopt | Restore | Report | GiveUp
