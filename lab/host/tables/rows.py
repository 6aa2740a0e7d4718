"""A row of the host's tables."""

import enum
from dataclasses import dataclass
from typing import Any


class Question(enum.StrEnum):
    """What a row is about."""

    CLOSING = "session_closed"
    WITHOUT_SESSION = "a host without a session"
    FINALIZING = "the end of a simulation"


@dataclass(frozen=True, slots=True)
class Row:
    """One case with one variant over one carrier."""

    question: Question
    case: str
    variant: str
    transport: str
    """tcp or websocket."""

    seen: str
    """What the other side was told, or what was done."""

    after_s: float | None
    """From the cause to that; None where nothing was to be waited for."""

    right: bool
    """Whether it is what the repairs promise."""

    defective: bool
    """Whether this variant has the defect that the case is about: then it has to be wrong."""

    @property
    def ok(self) -> bool:
        """Whether the variant did what its label says."""
        return self.right is not self.defective

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "question": self.question.value,
            "case": self.case,
            "variant": self.variant,
            "transport": self.transport,
            "seen": self.seen,
            "after_s": None if self.after_s is None else round(self.after_s, 4),
            "right": self.right,
            "defective": self.defective,
            "ok": self.ok,
        }
