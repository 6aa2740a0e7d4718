"""What a server tells of its connections: each when it began and when it ended, on the server's own clock.

Nothing is polled: the server tells an event at the moment of its decision, in its own thread, and that is when it is
stamped. ``Server.count`` asks the same server for the connections that it has, which must agree.
"""

import time
from dataclasses import dataclass
from typing import Any

from lab.live.session.commands import Audit

CONNECTED = "connected"


@dataclass(slots=True)
class Life:
    """One connection, as its server saw it."""

    port: int
    """The client's."""

    began_at: float
    """CLOCK_MONOTONIC seconds: its WebSocket was open."""

    version: str | None = None
    """Of the API, by the path that it came by."""

    asked: bool = False
    """Its setup came, and was accepted; the answer may be under way."""

    ended_at: float | None = None
    """CLOCK_MONOTONIC seconds; None while it is open."""

    ended_s: float | None = None
    """The same instant in the server's session time, which is CLOCK_MONOTONIC until its first lapse."""

    how: str = ""
    """By a close frame, FIN, RST, or nothing that was seen."""


class Book:
    """One server's events; written in its thread, read in any."""

    def __init__(self) -> None:
        self.lives: list[Life] = []
        """Oldest first."""
        self.notes: list[tuple[str, dict[str, Any]]] = []
        """Everything else that it told."""
        self._open: dict[int, Life] = {}

    def tell(self, event: str, *, t: float, **fields: Any) -> None:
        """Take an event.

        Args:
            event: Its name.
            t: Session seconds.
            fields: What else there is.
        """
        at = time.monotonic()
        if event == CONNECTED and fields["remote"] is not None:
            life = self._open[fields["connection"]] = Life(fields["remote"][1], at, fields["version"])
            self.lives.append(life)
        elif event == Audit.ATTACH and (asking := self._open.get(fields["connection"])) is not None:
            asking.asked = True
        elif event == Audit.DETACH:
            ended = self._open.pop(fields["connection"], None)
            if ended is not None:
                ended.how, ended.ended_s, ended.ended_at = fields["how"], t, at
        else:
            self.notes.append((event, fields))

    def find(self, port: int, since: float) -> Life | None:
        """The connection from a port, not one that had the port before.

        Args:
            port: The client's.
            since: CLOCK_MONOTONIC seconds at or before the connection's beginning, and after the end of any other.
        """
        return next((life for life in reversed(self.lives) if life.port == port and life.began_at >= since), None)

    def open_ports(self) -> frozenset[int]:
        """The clients' ports of what is open by these events."""
        return frozenset(life.port for life in list(self.lives) if life.ended_at is None)
