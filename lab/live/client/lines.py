"""One attempt to connect, and the connection that it became."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from lab.live.client.link import Address, Ending, Link
from lab.live.protocol.messages import ServerMessage
from lab.live.recovery.liveness import Watchdog


@dataclass(frozen=True, slots=True)
class Loss:
    """A line in use is lost."""

    at: float
    """When it was noticed, CLOCK_MONOTONIC seconds."""

    by: str
    """silence or unacknowledged (the watchdog), closed (a close frame came), ended (without one), or drop (this side's
    own doing)."""


@dataclass(slots=True, eq=False)
class Line:
    """One attempt, and the connection that it became."""

    number: int
    handle: str | None
    """What it asked to resume."""

    began_t: float
    """Session time."""

    link: Link = field(init=False)
    watchdog: Watchdog = field(init=False)
    heard_at: float = 0.0
    """The last octets, CLOCK_MONOTONIC seconds."""

    lost: Loss | None = None
    path_back: bool = False
    """Octets came after it was lost."""

    wanted_end: bool = False
    """Its end is this side's own doing."""

    guard: "asyncio.Task[None] | None" = None
    """The watchdog at work."""

    @property
    def live(self) -> bool:
        """In use as far as anybody knows."""
        return self.lost is None and not self.wanted_end


class Listener(Protocol):
    """Who acts on what happens to lines."""

    def on_message(self, line: Line, message: ServerMessage) -> None:
        """A message came."""

    def on_lost(self, line: Line, loss: Loss) -> None:
        """The line in use is lost; not called for an end that was wanted."""

    def on_path_back(self, line: Line) -> None:
        """A lost line carries traffic again."""

    def on_pong(self, line: Line, sent_at: float) -> None:
        """A ping of that instant, CLOCK_MONOTONIC seconds, was answered."""

    def on_ended(self, line: Line, ending: Ending) -> None:
        """A line is over, lost before or not."""


class Notice(Protocol):
    """Who is told what a link notices, with its line."""

    def connected(self, line: Line, local: Address, remote: Address) -> None:
        """TCP stands."""

    def heard(self, line: Line, at: float) -> None:
        """Octets came on a line."""

    def pong(self, line: Line, sent_at: float, at: float) -> None:
        """A pong came on a line."""


class LineEars:
    """Passes on what a link notices, with its line."""

    def __init__(self, line: Line, notice: Notice) -> None:
        self._line = line
        self._notice = notice

    def connected(self, local: Address, remote: Address) -> None:
        """TCP stands."""
        self._notice.connected(self._line, local, remote)

    def heard(self, at: float) -> None:
        """Octets came."""
        self._notice.heard(self._line, at)

    def pong(self, sent_at: float, at: float) -> None:
        """A pong came."""
        self._notice.pong(self._line, sent_at, at)
