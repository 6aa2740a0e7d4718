"""The connections of a server, each from its upgrade until somebody says how it ended."""

from dataclasses import dataclass

from lab.live.session.limit import Refusal


@dataclass(slots=True)
class Connection:
    """One WebSocket; changed by the house and by the session that it belongs to."""

    number: int
    since: float
    """When it was opened, session seconds."""

    session: str | None = None
    """The id of the session that it was attached to."""

    closed: bool = False
    """The server has sent its close frame: nothing more is sent, and what comes is not read."""

    refusal: Refusal | None = None
    """Why its setup is being refused."""

    refused_at: float | None = None
    """When the close that refuses it goes out."""

    @property
    def fresh(self) -> bool:
        """Whether its setup is still to come."""
        return self.session is None and self.refusal is None and not self.closed
