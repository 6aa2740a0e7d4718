"""The dead-man switch: an owner who has shown life once must go on doing so."""

import enum


class Pulse(enum.Enum):
    """What is known of the owner."""

    OFF = "off"
    """Nobody asked for a switch."""

    WAITING = "waiting"
    """The first heartbeat is yet to come; nothing heals by itself until then."""

    ALIVE = "alive"
    LOST = "lost"
    """None came in time; everything was healed. The next one arms the switch again."""


class Heartbeat:
    """One owner's switch.

    Args:
        within_s: How long the owner may be silent; None for no switch.
    """

    def __init__(self, within_s: float | None) -> None:
        self.within_s = within_s
        self.last_at: float | None = None
        """When the last heartbeat came, CLOCK_MONOTONIC."""

        self.pulse = Pulse.OFF if within_s is None else Pulse.WAITING

    @property
    def due_at(self) -> float | None:
        """When the owner counts as dead unless heard before; None while that cannot happen."""
        if self.pulse is not Pulse.ALIVE or self.last_at is None or self.within_s is None:
            return None
        return self.last_at + self.within_s

    def beat(self, now: float) -> None:
        """The owner lives."""
        self.last_at = now
        if self.within_s is not None:
            self.pulse = Pulse.ALIVE

    def check(self, now: float) -> bool:
        """Whether the owner has just been found dead."""
        due = self.due_at
        if due is None or now < due:
            return False
        self.pulse = Pulse.LOST
        return True
