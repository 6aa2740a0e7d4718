"""What a run proved.

A run is judged in two steps. First it must prove itself: one failed proof and it is INVALID, whatever was measured.
Only then is the measurement held against the prediction.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

DATED_WITHIN_S = 0.020
"""How closely a death has to be dated, unless the verdict is the same at both ends of the interval; so much past its
window an end may be and not be overdue."""


class Outcome(enum.Enum):
    """The four ends of a run."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"


class Kind(enum.Enum):
    """What a failed check means."""

    PROOF = "proof"
    """The run could not prove itself: INVALID."""

    PREDICTION = "prediction"
    """The model was wrong: REFUTED."""

    NOTE = "note"
    """Worth saying, decides nothing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question that a run answers about itself."""

    name: str
    """Hyphenated, stable: scripts look for it."""

    ok: bool
    detail: str
    """Expected and seen, one sentence."""

    kind: Kind = Kind.PROOF


def judge(checks: Iterable[Check]) -> Outcome:
    """The outcome that the checks add up to. No checks at all prove nothing: INVALID."""
    checks = tuple(checks)
    failed = {check.kind for check in checks if not check.ok}
    if Kind.PROOF in failed or not any(check.kind is Kind.PROOF for check in checks):
        return Outcome.INVALID
    if Kind.PREDICTION in failed:
        return Outcome.REFUTED
    if not any(check.kind is Kind.PREDICTION for check in checks):
        return Outcome.INVALID
    return Outcome.CONFIRMED


def why(checks: Iterable[Check]) -> str | None:
    """The sentences of the failed checks that decided, proofs first; None where none failed."""
    checks = tuple(checks)
    for kind in (Kind.PROOF, Kind.PREDICTION):
        failed = [f"{check.name}: {check.detail}" for check in checks if check.kind is kind and not check.ok]
        if failed:
            return "; ".join(failed)
    return None
