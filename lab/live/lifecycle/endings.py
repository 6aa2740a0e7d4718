"""Who ended a connection, and the errors that say so.

::

    SessionError
     +- ClosedHere          by close(), by release, or because the event loop ended
     +- ClosedByServer      with the server's code and reason
     |   +- SetupRefused    before the session was set up
     +- ConnectionLost      nobody said goodbye
     +- UnexpectedClosure   what the published client says in place of the three above
     +- NotConnected        a send or a resume that has no connection, or no name to resume by
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from lab.core.errors import LabError
from lab.live.protocol import closing, paths


class Party(enum.Enum):
    """Who ended a connection."""

    US = "us"
    SERVER = "server"
    NETWORK = "network"
    """Nobody: it ended without a close frame."""


ABNORMAL = 1006
"""What stands for the code where no close frame came (RFC 6455 section 7.1.5)."""


@dataclass(frozen=True, slots=True)
class Closure:
    """An end."""

    by: Party
    code: int
    """WebSocket close code; ``ABNORMAL`` where none came."""

    reason: str = ""
    """The server's word for it; of a connection that was lost, what showed it, such as the kernel's ETIMEDOUT."""


class WireEnded(Exception):
    """What a wire raises when it is over."""

    def __init__(self, closure: Closure) -> None:
        super().__init__(closure)
        self.closure = closure


class SessionError(LabError):
    """A session cannot do what is asked, or is over."""

    def __init__(self, message: str, closure: Closure | None = None, *, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.closure = closure
        """How the connection ended, where one did."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.message, self.closure, self.fix)


class ClosedHere(SessionError):
    """The application closed or released the session."""


class ClosedByServer(SessionError):
    """The server closed the session."""


class SetupRefused(ClosedByServer):
    """The server closed the connection before it set the session up."""


class ConnectionLost(SessionError):
    """The connection ended without a close frame."""


class UnexpectedClosure(SessionError):
    """The published client's word for any end that is not 1001."""


class NotConnected(SessionError):
    """There is no connection."""


def told(closure: Closure) -> SessionError:
    """The error that says who ended a connection, and how."""
    if closure.by is Party.US:
        return ClosedHere("The session was closed here.", closure, fix="resume() opens it again.")
    if closure.by is Party.SERVER:
        return ClosedByServer(f"The server closed the session: {_said(closure)}.", closure)
    why = f": {closure.reason}" if closure.reason else ""
    return ConnectionLost(f"The connection ended without a close frame{why}.", closure)


def unexpected(closure: Closure) -> SessionError:
    """The same end as the published client tells it."""
    return UnexpectedClosure(f"The WebSocket closed unexpectedly, code {closure.code}.", closure)


def refused(closure: Closure, *, resuming: bool = False) -> SessionError:
    """An end before the session was set up.

    Args:
        closure: It.
        resuming: The setup named a session.
    """
    if closure.by is not Party.SERVER:
        return told(closure)
    return SetupRefused(f"The server refused the setup: {_said(closure)}.", closure, fix=_mends(closure, resuming))


def never() -> SessionError:
    """There was no connection yet."""
    return NotConnected("The session is not connected.", fix="connect() comes first.")


def released(closure: Closure) -> SessionError:
    """Nobody holds the session any more.

    Args:
        closure: Ours.
    """
    return ClosedHere("The session was released.", closure, fix="Hold the session for as long as you use it.")


def unnamed(*, asked: bool) -> SessionError:
    """There is nothing to resume by.

    Args:
        asked: The setup asks for names.
    """
    if asked:
        message = "There is nothing to resume yet: the server has not named the session."
        return NotConnected(message, fix="Wait until the session has a handle, which comes soon after connect().")
    message = "There is nothing to resume: the setup does not ask for a handle."
    return NotConnected(message, fix="Ask for one: Setup(..., session_resumption=SessionResumption()).")


def again(error: LabError | OSError) -> Callable[[], SessionError]:
    """Makes what is said after an attempt that failed; it holds no frame of that attempt.

    Args:
        error: What the attempt raised.
    """
    if isinstance(error, SessionError):
        kind, message, closure, fix = type(error), error.message, error.closure, error.fix
        return lambda: kind(message, closure, fix=fix)
    why, mends = str(error), "connect() or resume() tries again."
    if isinstance(error, LabError):
        why, mends = error.message.removesuffix("."), error.fix or mends
    return lambda: NotConnected(f"The session is not connected: {why}.", fix=mends)


def closure_of(error: SessionError) -> Closure:
    """How a connection ended of which this was told."""
    return error.closure or Closure(Party.NETWORK, ABNORMAL)


def _mends(closure: Closure, resuming: bool) -> str | None:
    if closure.code == HTTPStatus.NOT_FOUND:
        return f"Name the service's path in the URL, such as ws://HOST:PORT{paths.developer()}"
    if resuming and closure.code == closing.INTERNAL_ERROR.code:
        return (
            "resume() again later: a server keeps a session locked until it has seen the end of its last connection, "
            "and for a moment after that."
        )
    return None


def _said(closure: Closure) -> str:
    return f"{closure.code} {closure.reason}".rstrip(" .")


def _rebuilt(kind: type[SessionError], message: str, closure: Closure | None, fix: str | None) -> SessionError:
    return kind(message, closure, fix=fix)
