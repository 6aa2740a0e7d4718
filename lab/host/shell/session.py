"""What a host and a job need of a session, and what they hear of it."""

from typing import Protocol

from lab.host.machine.reasons import EndCause, Ending
from lab.host.protocol.messages import Answer, Ask, EventBody


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

    async def answer(self, ask: Ask) -> Answer:
        """Answer a request; whatever it raises is told as the request's error."""

    def listen(self, listener: Listener) -> None:
        """Tell somebody what happens; who listens first is told first."""

    def leave(self, listener: Listener) -> None:
        """Tell them no more."""

    async def close(self, cause: EndCause, error: str | None = None) -> None:
        """End it; twice is once."""
