"""Whether a connection still lives: a ping every half second, lost after two without a frame or a pong.

A silent healthy link answers its pings, so that silence alone is no loss. Three things look like one and are none:

- A server whose pongs take 8 to 30 s (seen in public). Patience grows with the slowest pong of late; before the first
  pong there is no measure, and patience is long. There the kernel decides: octets that the other end's kernel does
  not acknowledge are lost on the way, however slow the program behind it is (``unacknowledged``).
- A consumer that is slower than the sound it plays. ``frame`` is for the reader, who must never wait for a consumer.
- An event loop that stood still. What came in meanwhile is unread: a look that comes late does not judge, the next
  one does.

Instants are seconds of the wall, never of lapsed session time.
"""

import enum
from collections import deque
from dataclasses import dataclass


class By(enum.StrEnum):
    """What showed a loss."""

    SILENCE = "silence"
    """Neither frame nor pong for as long as patience lasts."""

    UNACKNOWLEDGED = "unacknowledged"
    """The peer's kernel acknowledges nothing, while pongs would be late anyway."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The connection is lost."""

    silent_s: float
    """Since the last frame or pong."""

    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The watchdog's numbers, in seconds."""

    ping_every_s: float = 0.5
    """Study; with ``lost_after_s`` a loss is noticed 1.5 to 2.0 s after it."""

    lost_after_s: float = 2.0
    """Study."""

    slow_factor: float = 3.0
    """Patience, in slowest pongs of late. Pongs of 8 to 30 s leave gaps of 22.5 s after one of 8 s: twice is too
    short."""

    first_pong_s: float = 60.0
    """Patience before the first pong, which tells how fast this server is: twice the slowest pong seen in public."""

    memory_s: float = 60.0
    """How long a pong counts as one of late, before the latest one."""

    late_look_s: float = 0.25
    """A look that comes this long after it was due shows a loop that stood still."""


class Watchdog:
    """Watches one connection from its first instant; a new connection gets a new one.

    Drive it with its ``next_at``: send a ping where ``ping_due``, tell ``pinged``, then ask ``lost``.

    Args:
        patience: Its numbers.
        now: When the connection was ready.
    """

    def __init__(self, patience: Patience | None = None, *, now: float) -> None:
        self._patience = Patience() if patience is None else patience
        self._heard_at = now
        self._ping_at = now
        self._look_at: float | None = None
        """When the next look is due, as announced; None: not announced."""

        self._forgiven_at: float | None = None
        """When a late look was let pass, in this silence."""

        self._pongs: deque[tuple[float, float]] = deque()
        """When pongs came and how long they took: those of late of which none that came later took as long, so that the
        first is the slowest. Every look asks for it, and a minute has 120 pongs."""

        self._unacknowledged_since: float | None = None

    def frame(self, *, now: float) -> None:
        """The reader got something, whatever it is."""
        self._heard_at = max(self._heard_at, now)
        self._forgiven_at = None

    def pong(self, sent_at: float, *, now: float) -> None:
        """The answer to the ping of that instant came."""
        self.frame(now=now)
        took_s = now - sent_at
        while self._pongs and self._pongs[0][0] < now - self._patience.memory_s:
            self._pongs.popleft()
        while self._pongs and self._pongs[-1][1] <= took_s:
            self._pongs.pop()
        self._pongs.append((now, took_s))

    def unacknowledged(self, since: float | None) -> None:
        """What the kernel says of the octets sent; optional, and best told just before each ping.

        Args:
            since: When the oldest of those was sent that are unacknowledged; None: all are acknowledged.
        """
        self._unacknowledged_since = since

    def ping_due(self, *, now: float) -> bool:
        """Whether a ping is to be sent now."""
        return now >= self._ping_at

    def pinged(self, *, now: float) -> None:
        """A ping was sent; the next one is due one interval after this one was."""
        due_at = self._ping_at + self._patience.ping_every_s
        self._ping_at = due_at if due_at > now else now + self._patience.ping_every_s

    @property
    def slowest_pong_s(self) -> float | None:
        """Of late; None before the first pong."""
        return self._pongs[0][1] if self._pongs else None

    @property
    def patience_s(self) -> float:
        """How long a silence is borne now."""
        slowest_s = self.slowest_pong_s
        if slowest_s is None:
            return max(self._patience.first_pong_s, self._patience.lost_after_s)
        return max(self._patience.lost_after_s, self._patience.slow_factor * slowest_s)

    def lost(self, *, now: float) -> Loss | None:
        """The loss, if there is one by now."""
        at, by = self._verdict_at()
        due_at, self._look_at = self._look_at, None
        if now < at or self._forgives(due_at, now):
            return None
        return Loss(now - self._heard_at, by)

    def next_at(self) -> float:
        """When to look again: the next ping, or the instant at which silence becomes a loss."""
        at = self._verdict_at()[0]
        if self._forgiven_at is not None:
            at = max(at, self._forgiven_at + self._patience.late_look_s)
        self._look_at = min(self._ping_at, at)
        return self._look_at

    def _verdict_at(self) -> tuple[float, By]:
        """When the connection counts as lost if nothing more is heard, and by what."""
        silence_at = self._heard_at + self.patience_s
        if self._unacknowledged_since is None:
            return silence_at, By.SILENCE
        unsent_at = max(self._heard_at, self._unacknowledged_since) + self._patience.lost_after_s
        return min((silence_at, By.SILENCE), (unsent_at, By.UNACKNOWLEDGED), key=lambda verdict: verdict[0])

    def _forgives(self, due_at: float | None, now: float) -> bool:
        """Whether this look is late, or so soon after a late one that the reader may not have read; once a silence."""
        late_s = self._patience.late_look_s
        if self._forgiven_at is not None:
            return now < self._forgiven_at + late_s
        if due_at is None or now - due_at < late_s:
            return False
        self._forgiven_at = now
        return True
