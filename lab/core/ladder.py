"""The back-off ladder: how long a sender waited before each copy that its timer sent (RFC 6298 section 5.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.core.segment_class import SegmentClass

_SAME = 0.1
"""Two waits that differ by less than this share are one value: the timer wheel rounds up by at most an eighth."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Waits of one series of timer copies."""

    of: SegmentClass
    """What was copied: timeout-copy, syn-copy, fin-copy or window-probe."""

    base_s: float
    """The first wait, so the retransmission timeout before any doubling."""

    cap_s: float | None
    """The wait at which doubling stopped; None where it had not when the series ended."""

    steps_s: tuple[float, ...]
    """All waits in order."""


def ladder_of(of: SegmentClass, steps_s: Sequence[float], *, capped: bool = True) -> Ladder | None:
    """The ladder of a series of waits, None where there is none.

    Args:
        of: What was copied.
        steps_s: Wait before each timer copy, in order, seconds.
        capped: False where something other than the maximum kept the waits short, such as ICMP messages that undo
            the doubling (RFC 6069).
    """
    if not steps_s:
        return None
    return Ladder(of, steps_s[0], _cap(steps_s) if capped else None, tuple(steps_s))


def _cap(steps_s: Sequence[float]) -> float | None:
    """The plateau at the end, where the waits had doubled up to it or there are at least three."""
    last = steps_s[-1]
    level = 0
    for step_s in reversed(steps_s):
        if abs(step_s - last) > _SAME * last:
            break
        level += 1
    risen = level < len(steps_s)
    if level >= 2 and (risen or level >= 3):
        plateau = sorted(steps_s[-level:])
        return plateau[len(plateau) // 2]
    return None
