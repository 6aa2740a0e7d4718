"""What a prediction stood on, looked at again where it failed: a calm machine, and a socket as it was looked at.

Between the look that a prediction is made of and the cut the last acknowledgment may come, or the answer to a probe.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from lab.core.prediction import State
from lab.core.socket import SocketSample, Timer
from lab.core.verdict import Check
from lab.run.findings import EndFinding, Findings

LATE_S = 0.010
"""How late a sampler may have been woken for a failed prediction to count: 2.5 ticks at HZ 250, about what the model
allows a timer's handler."""


def ground_held(end: EndFinding, found: Findings) -> Iterator[Check]:
    """Whether what an end's failed prediction stood on was still there in the dark."""
    yield Check(
        f"{end.name}-undisturbed",
        end.late_s <= LATE_S,
        f"a prediction failed while processes waited up to {end.late_s * 1000:.0f} ms for a processor "
        f"(at most {LATE_S * 1000:.0f})",
    )
    looks = _looks_in_the_dark(end, found)
    yield from _rto_held(end, looks)
    yield from _probes_held(end, looks)


def _rto_held(end: EndFinding, looks: Sequence[SocketSample]) -> Iterator[Check]:
    foretold_s, dark_s = end.forecast.sending_situation.rto_s, _rto_in_the_dark(looks)
    if (end.sends or end.orphan is not None) and foretold_s is not None and dark_s is not None:
        yield Check(
            f"{end.name}-rto-as-foretold",
            dark_s == foretold_s,
            f"a prediction failed that was made of an RTO of {foretold_s:.3f} s; in the dark it was {dark_s:.3f} s",
        )


def _probes_held(end: EndFinding, looks: Sequence[SocketSample]) -> Iterator[Check]:
    """What was held back before a closed window, and by how many answered probes its timer was backed off."""
    situation = end.forecast.situation(sends=end.sends)
    probing = situation.backoff if situation.state is State.ZERO_WINDOW else None
    if looks and looks[0].timer is Timer.PROBE and (probing is not None or not end.sends):
        answered = max(looks[0].backoff - looks[0].retransmits, 0)
        yield Check(
            f"{end.name}-probes-as-foretold",
            answered == probing,
            f"a prediction failed that was made of {_answered(probing)}; in the dark it was {_answered(answered)}",
        )


def _looks_in_the_dark(end: EndFinding, found: Findings) -> list[SocketSample]:
    until = found.watched_until if found.healed is None else found.healed.began_at
    return [s for s in end.samples if found.cut.done_at <= s.at < until]


def _rto_in_the_dark(looks: Iterable[SocketSample]) -> float | None:
    """The last RTO before its first back-off, after which none was measured; None where no look saw it."""
    plain = list(itertools.takewhile(lambda look: not look.backoff, looks))
    return plain[-1].rto_s or None if plain else None


def _answered(probes: int | None) -> str:
    return "an open window" if probes is None else f"a back-off of {probes} by probes that were answered"
