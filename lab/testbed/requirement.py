"""One thing that the lab asks of a machine, and how it was found."""

import enum
from dataclasses import dataclass


class Status(enum.Enum):
    """How a requirement was found."""

    OK = "ok"
    MISSING = "missing"
    """The embedded testbed needs it, and it is not there."""

    OPTIONAL_MISSING = "optional-missing"
    """Not there; the embedded testbed runs without it."""

    RESTRICTED = "restricted"
    """There, but forbidden to this user or in this place."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that the lab asks of a machine."""

    name: str
    status: Status
    required: bool
    """Whether the embedded testbed needs it."""

    seen: str
    """What was found, or what the kernel answered."""

    fix: str | None = None
    """One line that mends it; None where all is well, or another requirement's fix has to come first."""

    @property
    def blocks(self) -> bool:
        """Whether the embedded testbed cannot run for want of it."""
        return self.required and self.status is not Status.OK


def optional(name: str, *, ok: bool, seen: str, fix: str) -> Requirement:
    """A requirement that the embedded testbed runs without."""
    if ok:
        return Requirement(name, Status.OK, False, seen)
    return Requirement(name, Status.OPTIONAL_MISSING, False, seen, fix)
