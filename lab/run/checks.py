"""Everything that a run is judged by: its proofs first, then its prediction, and what a busy machine takes back."""

from collections.abc import Iterable

from lab.core.verdict import Check, Kind
from lab.run.findings import Findings
from lab.run.predictions import predictions
from lab.run.proofs import proofs

LATE_S = 0.010
"""How late a sampler may have been woken for a failed prediction to count: 2.5 ticks at HZ 250, about what the model
allows a timer's handler."""

DISTURBABLE = (
    "capture-complete",
    "bystander-unharmed",
    "clocks-steady",
    "death-dated",
    "witnesses-agree",
    "watched",
    "undisturbed",
)
"""Ends of the names of proofs that a busy machine can spoil; the others say that something is wrong."""


def judged(found: Findings) -> list[Check]:
    """Every proof and every prediction; a prediction that failed on a busy machine has proved nothing."""
    predicted = predictions(found)
    failed = {check.name.partition("-")[0] for check in predicted if check.kind is Kind.PREDICTION and not check.ok}
    calm = [
        Check(
            f"{end.name}-undisturbed",
            end.late_s <= LATE_S,
            f"a prediction failed while processes waited up to {end.late_s * 1000:.0f} ms for a processor "
            f"(at most {LATE_S * 1000:.0f})",
        )
        for end in found.ends
        if end.name in failed
    ]
    return [*proofs(found), *calm, *predicted]


def disturbed(checks: Iterable[Check]) -> bool:
    """Whether all the proofs that failed are of the kind that a busy machine can spoil: the run is worth repeating."""
    failed = [check.name for check in checks if check.kind is Kind.PROOF and not check.ok]
    return bool(failed) and all(name.endswith(DISTURBABLE) for name in failed)
