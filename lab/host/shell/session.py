"""What a host and a job need of a session, and what they hear of it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Protocol

from lab.host.machine.reasons import EndCause, Ending
from lab.host.protocol.messages import Answer, Ask, EventBody
from lab.host.shell.tasks import each


class Listener(Protocol):
    """Who hears of a session."""

    def happened(self, session: "Session", body: EventBody) -> None:
        """Something happened in it."""

    def closed(self, session: "Session", ending: Ending) -> None:
        """It is over; nothing more happens in it."""


class Session(Protocol):
    """An agent's conversation."""

    @property
    def name(self) -> str:
        """Its own, among those of its job."""

    @property
    def room(self) -> str:
        """Where it takes place."""

    @property
    def ending(self) -> Ending | None:
        """How it ended, None while it goes on; from before its listeners are told."""

    async def answer(self, ask: Ask) -> Answer:
        """Answer a request; whatever it raises is told as the request's error."""

    def listen(self, listener: Listener) -> None:
        """Tell somebody what happens; who listens first is told first."""

    def leave(self, listener: Listener) -> None:
        """Tell them no more."""

    async def close(self, cause: EndCause, error: str | None = None) -> None:
        """End it; twice is once."""


class BaseSession:
    """What every session has beside its answers: who listens, and one end. A session of one's own adds ``answer``.

    Args:
        name: Its own, among those of its job.
        room: Where it takes place.
    """

    def __init__(self, name: str, room: str) -> None:
        self._name = name
        self._room = room
        self._ending: Ending | None = None
        self._listeners: list[Listener] = []

    @property
    def name(self) -> str:
        """See ``Session``."""
        return self._name

    @property
    def room(self) -> str:
        """See ``Session``."""
        return self._room

    @property
    def ending(self) -> Ending | None:
        """See ``Session``."""
        return self._ending

    async def answer(self, ask: Ask) -> Answer:
        """See ``Session``."""
        raise NotImplementedError(f"This session does not answer {type(ask).__name__}.")

    def listen(self, listener: Listener) -> None:
        """See ``Session``."""
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """See ``Session``."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def tell(self, body: EventBody) -> None:
        """Let an event happen."""
        self._each(lambda listener: listener.happened(self, body))

    def end(self, cause: str, error: str | None = None) -> None:
        """End it at once; twice is once.

        Args:
            cause: An ``EndCause``, or a word of another version.
            error: What went wrong, if anything did.
        """
        if self._ending is not None:
            return
        ending = self._ending = Ending(cause, error)
        self._each(lambda listener: listener.closed(self, ending))

    def _each(self, tell: Callable[[Listener], None]) -> None:
        """Whatever one of them raises, all are told; who tells them hears of it."""
        raised = each(tell, list(self._listeners))
        if raised is not None:
            raise raised

    async def close(self, cause: EndCause, error: str | None = None) -> None:
        """See ``Session``."""
        self.end(cause, error)


class Roster:
    """The sessions that a host knows, each by a name that no other one has meanwhile."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def __getitem__(self, name: str) -> Session:
        return self._sessions[name]

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def get(self, name: str | None) -> Session | None:
        """The session of a name, if there is one."""
        return None if name is None else self._sessions.get(name)

    def name(self, session: Session) -> str | None:
        """The name under which a session is known here, None for one that is not."""
        return next((name for name, known in self._sessions.items() if known is session), None)

    def free(self, session: Session) -> str:
        """A name for another one: its own, if no session has that which was taken away and is not over."""
        names = itertools.chain([session.name], (f"{session.name} ({number})" for number in itertools.count(2)))
        return next(name for name in names if name not in self._sessions)

    def add(self, name: str, session: Session) -> None:
        """Know it from now on."""
        self._sessions[name] = session

    def drop(self, name: str) -> None:
        """Know it no more."""
        del self._sessions[name]
