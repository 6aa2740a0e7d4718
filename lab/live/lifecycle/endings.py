"""Who ended a connection, and the errors that say so.

::

    SessionError
     +- ClosedHere          by close(), by release, or because the event loop ended
     +- ClosedByServer      with the server's code and reason
     |   +- SetupRefused    before the session was set up
     +- ConnectionLost      nobody said goodbye
     +- UnexpectedClosure   what the published client says in place of the three above
     +- NotConnected        a send or a resume that has no connection
"""

import enum
from dataclasses import dataclass

from lab.core.errors import LabError


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
    said = _said(closure)
    if closure.by is Party.US:
        return ClosedHere("The session was closed here.", closure, fix="resume() opens it again.")
    if closure.by is Party.SERVER:
        return ClosedByServer(f"The server closed the session: {said}.", closure)
    return ConnectionLost("The connection ended without a close frame.", closure)


def unexpected(closure: Closure) -> SessionError:
    """The same end as the published client tells it."""
    return UnexpectedClosure(f"The WebSocket closed unexpectedly, code {closure.code}.", closure)


def refused(closure: Closure) -> SessionError:
    """An end before the session was set up."""
    if closure.by is not Party.SERVER:
        return told(closure)
    said = _said(closure)
    return SetupRefused(f"The server refused the setup: {said}.", closure)


def _said(closure: Closure) -> str:
    return f"{closure.code} {closure.reason}".rstrip(" .")


def _rebuilt(kind: type[SessionError], message: str, closure: Closure | None, fix: str | None) -> SessionError:
    return kind(message, closure, fix=fix)
