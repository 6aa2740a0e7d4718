"""The part of a record that says what was seen; times in seconds from the cut."""

import enum

from pydantic import FiniteFloat, NonNegativeInt

from lab.core.prediction import Cause
from lab.report.record_part import Part


class NoticedBy(enum.Enum):
    """By which sign the program showed that it knew."""

    OUTPUT = "output"
    CLOSE = "close"
    EXIT = "exit"
    ERROR = "error"


class OrphanObservation(Part):
    """What a kernel made of a socket after its program had closed it; seconds from the cut."""

    copies: NonNegativeInt | None = None
    """Those of the end's copies that left after the close."""

    gone_s: FiniteFloat | None = None
    """When the kernel ended it; None where it was still there when the watch ended."""

    gone_within_s: FiniteFloat | None = None
    """How exactly ``gone_s`` is known, plus or minus."""

    cause: Cause | None = None
    """None (the word) where it is still there, or its own timer did not end it."""


class EndObservation(Part):
    """What one end's kernel and program did."""

    first_lost_s: FiniteFloat | None = None
    copies: NonNegativeInt | None = None
    """None where it was not counted; 0 where nothing was sent into the hole."""

    copy_times_s: tuple[FiniteFloat, ...] = ()
    copy_classes: tuple[str, ...] = ()
    """Segment class of each copy, in the order of ``copy_times_s``; empty where they were not classified."""

    last_copy_s: FiniteFloat | None = None
    gave_up_s: FiniteFloat | None = None
    gave_up_within_s: FiniteFloat | None = None
    """How exactly ``gave_up_s`` is known, plus or minus."""

    cause: Cause | None = None
    closed_s: FiniteFloat | None = None
    """When the program closed the socket that its kernel had not given up; what follows is an orphan's end."""

    held_s: FiniteFloat | None = None
    """The last look that saw the program hold a socket which it closed: the close lies between this and ``closed_s``.
    None where the wire dates the close."""

    orphan: OrphanObservation | None = None
    """What became of the socket after ``closed_s``; None where nothing was left of it, or no program closed."""

    errno: str | None = None
    """Name of the error that the program was given; None where a foreign program hides it."""

    noticed_s: FiniteFloat | None = None
    noticed_by: NoticedBy | None = None
    """A close or an exit may follow from the loss, or from the program's own schedule: only the program knows."""

    never_told: bool | None = None
    """True where neither kernel nor program of this end learned anything while it was watched; None: not known."""

    recovered_s: FiniteFloat | None = None
    """When the other end first acknowledged this end again after a heal."""

    @property
    def copies_until_closed(self) -> int | None:
        """Copies that left while its program held the socket; all of them where none closed it."""
        if self.closed_s is None or self.copies is None or len(self.copy_times_s) != self.copies:
            return self.copies
        return sum(1 for at in self.copy_times_s if at <= self.closed_s)

    @property
    def by_itself(self) -> bool:
        """Whether the program's first sign is a close or an exit before its kernel's end: its reason is not known."""
        if self.noticed_s is None or self.noticed_by not in (NoticedBy.CLOSE, NoticedBy.EXIT):
            return False
        return self.gave_up_s is None or self.noticed_s < self.gave_up_s - (self.gave_up_within_s or 0.0)


class Bystander(Part):
    """The second flow on the same path."""

    alive: bool | None = None
    lost: NonNegativeInt | None = None


class Crossed(Part):
    """What came through the hole while it was dark."""

    segments: NonNegativeInt | None = None
    rst: NonNegativeInt | None = None
    fin: NonNegativeInt | None = None
    icmp: NonNegativeInt | None = None


class Observed(Part):
    """What was seen."""

    client: EndObservation = EndObservation()
    server: EndObservation = EndObservation()
    bystander: Bystander = Bystander()
    reconnected: bool | None = None
    """Whether a new connection of the lab's own was set up while the old one was dark; None where the lab itself tried
    none. Connections of the user's own programs are not counted."""

    crossed: Crossed = Crossed()
