"""Where between 0 and 1.5 s an idle abort frees the session: the study saw a refusal at 0 and none at about 1.5 s.

The profile's settle time is swept, and single attempts are made at several offsets around it. It shows what a client
would have seen of a server with that settle time, so which of them agree with the study's rows.
"""

from lab.study.ranges import booked, refusals
from lab.study.scenario import Group, Loss, Origin, Scenario, ServerPlan, Variant
from lab.study.steps import END, booking, drop, resume, wait

SETTLE_S = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Settle times of the profile."""

BEFORE_S, AFTER_S = 0.15, 0.05
"""An attempt this long before the end of the settle time, and one after it: a setup takes a few milliseconds to arrive,
never less than none."""

LAST_S = 1.6
"""The study's own second attempt."""


def offsets(settle_s: float) -> tuple[float, ...]:
    """When single attempts are made after the abort, seconds."""
    around = (settle_s - BEFORE_S, settle_s + AFTER_S) if settle_s else ()
    return tuple(sorted({0.0, *(round(each, 3) for each in around), LAST_S}))


def _row(settle_s: float) -> Scenario:
    tries = offsets(settle_s)
    refused = tuple(int(offset < settle_s) for offset in tries)
    source = "S4: refused until the settle time is over"
    return Scenario(
        id=f"settle-{settle_s:.2f}",
        title=f"R1's abort, settle time {settle_s:g} s, one attempt after {', '.join(f'{each:g}' for each in tries)} s",
        n=len(tries),
        group=Group.SWEEP,
        loss=Loss.ABORT,
        lapsed=tuple(
            Variant((*booking(), drop("abort"), resume(each), wait("committed"), END), limit_s=60) for each in tries
        ),
        prediction=f"The attempts before {settle_s:g} s are refused, the others accepted.",
        expects=(
            *refusals(refused, tuple(1 - each for each in refused), source, Origin.LAB),
            *booked(1, None, source, Origin.LAB),
        ),
        server=ServerPlan(settings={"settle_s": settle_s}),
    )


SWEEP = tuple(map(_row, SETTLE_S))
