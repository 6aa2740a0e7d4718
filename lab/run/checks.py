"""Everything that a run is judged by: its proofs first, then its prediction, and what a busy machine takes back."""

from collections.abc import Iterable

from lab.core.verdict import Check, Kind
from lab.run.findings import Findings
from lab.run.ground import ground_held
from lab.run.predictions import predictions
from lab.run.proofs import proofs

DISTURBABLE = (
    "capture-complete",
    "bystander-unharmed",
    "clocks-steady",
    "death-dated",
    "witnesses-agree",
    "watched",
    "undisturbed",
    "rto-as-foretold",
    "probes-as-foretold",
)
"""Ends of the names of proofs that a busy machine can spoil; the others say that something is wrong."""


def judged(found: Findings) -> list[Check]:
    """Every proof and every prediction; one that failed on a busy machine, or of another socket, has proved nothing."""
    predicted = predictions(found)
    failed = {check.name.partition("-")[0] for check in predicted if check.kind is Kind.PREDICTION and not check.ok}
    excused = [check for end in found.ends if end.name in failed for check in ground_held(end, found)]
    return [*proofs(found), *excused, *predicted]


def disturbed(checks: Iterable[Check]) -> bool:
    """Whether all the proofs that failed are of the kind that a busy machine can spoil: the run is worth repeating."""
    failed = [check.name for check in checks if check.kind is Kind.PROOF and not check.ok]
    return bool(failed) and all(name.endswith(DISTURBABLE) for name in failed)
