"""What an assistant can be told to do. All durations are session seconds."""

import typing
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Connect:
    """Open the first connection; it happens by itself where a script does not begin with this."""

    do: ClassVar[str] = "connect"
    handle: str | None = None
    """Resume a session of an earlier run."""

    transparent: bool = False
    """Write ``"transparent": true`` into the setup, which the developer endpoint refuses."""

    may_fail: bool = False
    """Go on with the script when it is refused."""

    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Say:
    """Speak a clip in real time, 100 ms of audio at a time; in text mode its words are typed."""

    do: ClassVar[str] = "say"
    clip: str


@dataclass(frozen=True, slots=True)
class Type:
    """Type a text."""

    do: ClassVar[str] = "type"
    text: str
    turn: bool = False
    """As a complete turn (``clientContent``) instead of real-time input."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for an event of the assistant's own, and then so long after the instant of that event.

    Events count that came since the last step began that can cause one (so not since a wait, ``watch``,
    ``hold-result`` or ``lapse``), and after the event that the last wait found.
    """

    do: ClassVar[str] = "await"
    event: str
    """Its name, or several with ``|`` between them: whichever comes first."""

    plus_s: float = 0.0
    timeout_s: float = 30.0
    """A script that waits longer than this is stuck."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Say an event by which whoever runs the assistant acts: cut, heal, freeze."""

    do: ClassVar[str] = "mark"
    name: str


@dataclass(frozen=True, slots=True)
class Drop:
    """End the connection from here."""

    do: ClassVar[str] = "drop"
    how: typing.Literal["abort", "close"] = "abort"
    """Abort the TCP connection, or send a close frame (1000)."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Attempts to resume, until one is accepted; the old connection is left as it is."""

    do: ClassVar[str] = "resume"
    at: tuple[float, ...] = (0.0, 1.0)
    """When each begins, from the step's begin; one whose predecessor is still open begins after it."""

    every_s: float | None = None
    """After those, one every so often, start to start; None for no more."""

    until_s: float | None = None
    """None begins later than this; None with ``every_s`` would never end."""

    close_old_first: bool = False
    """Queue a close (1000) on the old connection before the first attempt."""

    timeout_s: float = 10.0
    """An attempt that is still open then has failed."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Open a new session, without a handle and without anything restored."""

    do: ClassVar[str] = "fresh"
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ReuseOld:
    """Go on with the lost connection: its path is back."""

    do: ClassVar[str] = "reuse-old"


@dataclass(frozen=True, slots=True)
class CloseOld:
    """Send a close frame on every connection that was lost and is still open."""

    do: ClassVar[str] = "close-old"
    code: int = 1000


@dataclass(frozen=True, slots=True)
class Watch:
    """Do nothing but listen."""

    do: ClassVar[str] = "watch"
    for_s: float


@dataclass(frozen=True, slots=True)
class HoldResult:
    """Keep results of calls back from now on."""

    do: ClassVar[str] = "hold-result"


@dataclass(frozen=True, slots=True)
class SendResult:
    """Send the results that were kept back, and later ones as they come."""

    do: ClassVar[str] = "send-result"


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask, wait for the whole answer, and compare it with the bookings."""

    do: ClassVar[str] = "ask"
    text: str = "Did you book it?"
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class LapseTime:
    """Let session time run by this factor, here and on the server; 1 ends it."""

    do: ClassVar[str] = "lapse"
    factor: float


@dataclass(frozen=True, slots=True)
class Recover:
    """Hand over to the recovery policy until it has adopted a connection or given up."""

    do: ClassVar[str] = "recover"
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class End:
    """Say the bookings and the ledger, then wait for ``quit``; sockets stay as they are."""

    do: ClassVar[str] = "end"


Step = (
    Connect | Say | Type | Await | Mark | Drop | Resume | Fresh | ReuseOld | CloseOld | Watch | HoldResult | SendResult
    | Ask | LapseTime | Recover | End
)  # fmt: skip
