"""What whoever owns a host or a job can do wrong, each with what mends it.

::

    Misuse                       whoever calls hears of it; the remote, and all others, are served on
     +- AlreadyRegistered           a session at its host, twice
     +- SessionOver                 a session that has ended
     +- HostOver                    a host that takes no session any more
     +- NotStarted                  a session that its job does not take
"""


class Misuse(ValueError):
    """Base of them; its text is a sentence for who called."""


class _OfSession(Misuse):
    """What is wrong with one session.

    Args:
        session: Its name.
    """

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session


class AlreadyRegistered(_OfSession):
    """A session was registered twice at one host."""

    def __str__(self) -> str:
        return (
            f"Session {self.session} is registered already, and stays so. "
            "Fix: register each session once; another session would replace it."
        )


class SessionOver(_OfSession):
    """A session that has ended was given to a host or a job."""

    def __str__(self) -> str:
        return f"Session {self.session} has ended, and has no answers any more. Fix: make a new session, and give that."


class HostOver(Misuse):
    """Something was asked of a host that is closing or closed."""

    def __str__(self) -> str:
        return (
            "The host is closing or closed: it takes no session any more. "
            "Fix: register sessions before its close; after it, make a host on a new transport."
        )


class NotStarted(Misuse):
    """A job does not take a session.

    Args:
        session: Its name.
        running: Whether one of that name is running; else the job is shutting down.
    """

    def __init__(self, session: str, *, running: bool) -> None:
        super().__init__(session, running)
        self.session = session
        self.running = running

    def __str__(self) -> str:
        if self.running:
            return f"Session {self.session} is running already. Fix: start each once, and give each its own name."
        return (
            f"Session {self.session} comes too late: the job is shutting down. "
            "Fix: start sessions before the shutdown; after it, make a new job."
        )
