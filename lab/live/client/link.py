"""One connection to a session server, as the assistant uses it, whatever it stands on.

Nothing here waits for a peer that may be gone: ``send`` queues, ``ping`` and ``close`` go on in the background,
``abort`` is at once. What arrives is drained into the link's own buffer, so that a slow consumer never looks like a
dead path.
"""

import enum
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from lab.core.errors import LabError
from lab.live.protocol.messages import ClientMessage, ServerMessage, Setup

Address = tuple[str, int]


class Phase(enum.Enum):
    """How far an attempt has come."""

    CONNECT = "connect"
    """Name, TCP, and TLS where there is some."""

    UPGRADE = "upgrade"
    """The WebSocket handshake."""

    SETUP = "setup"
    """The setup is sent, its answer awaited."""

    OPEN = "open"


class Refused(LabError):
    """The server answered an attempt with no."""

    def __init__(self, code: int, reason: str, phase: Phase) -> None:
        super().__init__(f"The server refused the connection: {code} {reason}".rstrip())
        self.code = code
        """Close code, or HTTP status where the phase is UPGRADE."""

        self.reason = reason
        self.phase = phase


class Failed(LabError):
    """An attempt ended without an answer."""

    def __init__(self, why: str, phase: Phase) -> None:
        super().__init__(f"The connection failed: {why}.")
        self.why = why
        self.phase = phase


@dataclass(frozen=True, slots=True)
class Ending:
    """How a link that was open ended."""

    code: int | None
    """Of the close frame that came; None where none came."""

    reason: str
    by: str
    """server, us, or network."""

    error: str | None = None
    """The kernel's errno name, where it said one."""


class Ears(Protocol):
    """Who is told what a link notices, at the instant it does; instants are CLOCK_MONOTONIC seconds."""

    def connected(self, local: Address, remote: Address) -> None:
        """TCP, and TLS where there is some, stand."""

    def heard(self, at: float) -> None:
        """Octets came."""

    def pong(self, sent_at: float, at: float) -> None:
        """The answer to a ping."""


class Link(Protocol):
    """A connection, from its attempt to its end."""

    @property
    def phase(self) -> Phase:
        """How far it has come."""

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it has not."""

    async def connect(self, setup: Setup) -> None:
        """Connect, send the setup, and wait for its answer; cancelling it aborts the connection.

        Raises:
            Refused: the server said no.
            Failed: nobody said anything usable.
        """

    def send(self, message: ClientMessage, written: Callable[[], None] | None = None) -> None:
        """Queue a message; ``written`` is called when it is on its way to the kernel. Nothing on an ended link."""

    def ping(self) -> None:
        """Send a ping in the background; its pong is told to the ears."""

    def unacknowledged(self, now: float) -> float | None:
        """Since when octets are unacknowledged by the peer's kernel; None: none are, or this kernel does not say."""

    def abort(self) -> None:
        """End the TCP connection now, without a close frame; idempotent, never waits."""

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Queue a close frame and wait for its answer in the background, for ever; idempotent."""

    def __aiter__(self) -> AsyncIterator[ServerMessage]:
        """What comes after the setup's answer and with it; ends with the link."""
