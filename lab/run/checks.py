"""Everything that a run is judged by: its proofs first, then its prediction, and what a busy machine takes back."""

from collections.abc import Iterable, Iterator

from lab.core.verdict import Check, Kind
from lab.run.findings import EndFinding, Findings
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
    "rto-as-foretold",
)
"""Ends of the names of proofs that a busy machine can spoil; the others say that something is wrong."""


def judged(found: Findings) -> list[Check]:
    """Every proof and every prediction; one that failed on a busy machine, or of another RTO, has proved nothing."""
    predicted = predictions(found)
    failed = {check.name.partition("-")[0] for check in predicted if check.kind is Kind.PREDICTION and not check.ok}
    excused = [check for end in found.ends if end.name in failed for check in _ground_held(end, found)]
    return [*proofs(found), *excused, *predicted]


def _ground_held(end: EndFinding, found: Findings) -> Iterator[Check]:
    """Whether what an end's failed prediction stood on was still there in the dark."""
    yield Check(
        f"{end.name}-undisturbed",
        end.late_s <= LATE_S,
        f"a prediction failed while processes waited up to {end.late_s * 1000:.0f} ms for a processor "
        f"(at most {LATE_S * 1000:.0f})",
    )
    foretold_s, dark_s = end.forecast.sending_situation.rto_s, _rto_in_the_dark(end, found)
    if end.sends and foretold_s is not None and dark_s is not None:
        # The last acknowledgment may come between the look at the socket and the cut, and no RTT is measured after it.
        yield Check(
            f"{end.name}-rto-as-foretold",
            dark_s == foretold_s,
            f"a prediction failed that was made of an RTO of {foretold_s:.3f} s; in the dark it was {dark_s:.3f} s",
        )


def _rto_in_the_dark(end: EndFinding, found: Findings) -> float | None:
    """The RTO before its first back-off; None where no look fell between the cut and that, or the heal."""
    until = found.watched_until if found.healed is None else found.healed.began_at
    looks = (s for s in end.samples if found.cut.done_at <= s.at < until)
    first = next(looks, None)
    return None if first is None or first.backoff or not first.rto_s else first.rto_s


def disturbed(checks: Iterable[Check]) -> bool:
    """Whether all the proofs that failed are of the kind that a busy machine can spoil: the run is worth repeating."""
    failed = [check.name for check in checks if check.kind is Kind.PROOF and not check.ok]
    return bool(failed) and all(name.endswith(DISTURBABLE) for name in failed)
