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
    """Whether it is what the repairs promise: right in itself."""

    defective: bool
    """Whether this variant has the defect that the case is about."""

    shows: bool = False
    """Of such a variant, whether what was seen is that defect, and not another one."""

    @property
    def as_predicted(self) -> bool:
        """Whether the variant did what its name says: a repaired one what is right, another one its defect."""
        return self.shows and not self.right if self.defective else self.right

    def as_dict(self) -> dict[str, Any]:
        """For JSON, where ``ok`` is what it is in every other table: right in itself."""
        return {
            "question": self.question.value,
            "case": self.case,
            "variant": self.variant,
            "transport": self.transport,
            "seen": self.seen,
            "after_s": None if self.after_s is None else round(self.after_s, 4),
            "right": self.right,
            "defective": self.defective,
            "shows": self.shows,
            "ok": self.right,
            "as_predicted": self.as_predicted,
        }
