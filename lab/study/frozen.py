"""Round 2: a proxy in the router freezes the connection while both kernels keep acknowledging (N1 to N3, P4)."""

from collections.abc import Sequence
from dataclasses import replace

from lab.study.ranges import ACCEPTANCE, DETECTED, REFUSAL_HELD, booked, exactly, refusals, with_grain, within
from lab.study.scenario import Group, Loss, Mark, Quantity, Scenario, Step, Variant
from lab.study.steps import (
    CLOSE_OLD,
    END,
    REUSE_OLD,
    backing_off,
    booking,
    lapsed,
    mark,
    report,
    resume,
    resume_every,
    wait,
    watch,
)

DETECTED_AFTER_S = 1.8
"""About what detection takes, seconds."""

REFUSED_IN_S = 0.57
"""About what a refusal takes; the study waited from one refusal to the next attempt."""

SIX = backing_off((1, 2, 4, 8, 16), REFUSED_IN_S)
EIGHT = backing_off((1, 2, 4, 8, 16, 32, 64), REFUSED_IN_S)


def _frozen(starts: Sequence[float], factor: float, before: Step) -> tuple[Step, ...]:
    """Freeze at R1's point, try, thaw 10 s after the last refusal, watch 8 s, close the old connection, resume."""
    waits = lapsed(factor, resume(*starts), watch(10.0), mark(Mark.UNFREEZE), watch(8.0))
    return (*booking(), mark(Mark.FREEZE), before, *waits, CLOSE_OLD, resume(0), *report())


EACH_WAIT = "every attempt before it takes its own time, which a lapse multiplies with what the machine adds"
"""Why the age of a call is known to seconds only."""

AT_DETECTION = wait("lost")
FIVE_S_LATER = wait("mark", 5.0)
"""N2's first attempt: so long after the freeze."""

N1 = Scenario(
    id="N1",
    title="freeze at R1's point; resume at detection and backing off; thaw, close, resume",
    n=3,
    group=Group.ROUND_2,
    loss=Loss.FREEZE,
    lapsed=tuple(
        Variant(_frozen(starts, 8, AT_DETECTION), limit_s=120, longest_s=40) for starts in (SIX, EIGHT, EIGHT)
    ),
    real=tuple(Variant(_frozen(starts, 1, AT_DETECTION), limit_s=300, longest_s=175) for starts in (SIX, EIGHT, EIGHT)),
    expects=(
        *refusals((6, 8, 8), 1, "N1"),
        DETECTED,
        REFUSAL_HELD,
        ACCEPTANCE,
        within(Quantity.RESULT_AGE_S, 30, 154, "N1: up to 154 s after the call", slack=5, why=EACH_WAIT, digits=0),
        *booked(1, 1, "rule 7"),
    ),
    study="all refused while frozen (6, 8, 8); after the close accepted first try, 596 to 600 ms; result accepted up "
    "to 154 s after the call",
)
N1 = replace(N1, expects_lapsed=(with_grain(REFUSAL_HELD, 8),))

N2 = Scenario(
    id="N2",
    title="as N1, first attempt 5 s after the freeze",
    n=3,
    group=Group.ROUND_2,
    loss=Loss.FREEZE,
    lapsed=(Variant(_frozen(SIX, 4, FIVE_S_LATER), limit_s=120, longest_s=30),),
    real=(Variant(_frozen(SIX, 1, FIVE_S_LATER), limit_s=180, longest_s=75),),
    expects=(*refusals(6, 1, "N2"), DETECTED, REFUSAL_HELD, ACCEPTANCE, *booked(1, 1, "rule 7")),
    expects_lapsed=(with_grain(REFUSAL_HELD, 4),),
    study="6 refusals each; after the close accepted, 559 to 568 ms",
)

N3 = Scenario(
    id="N3",
    title="freeze for 30 s, no resume, the old connection used on",
    n=2,
    group=Group.ROUND_2,
    loss=Loss.FREEZE,
    lapsed=(
        Variant(
            (*booking(), mark(Mark.FREEZE), wait("mark", 30.0, timeout=60), mark(Mark.UNFREEZE), REUSE_OLD, *report()),
            limit_s=90,
            longest_s=45,
        ),
    ),
    expects=(*refusals(0, 0, "N3"), DETECTED, *booked(1, 1, "N3")),
    study="the result is accepted on the old connection; consistent 2/2",
)

P4_ATTEMPTS = 13
"""One every minute from detection on; the thaw comes before the next."""


def _until_dead(factor: float) -> tuple[Step, ...]:
    waits = (
        resume_every(60.0, P4_ATTEMPTS),
        watch(777.0 - DETECTED_AFTER_S - 60.0 * (P4_ATTEMPTS - 1) - REFUSED_IN_S),
        mark(Mark.UNFREEZE),
        watch(8.0),
        resume(0),
    )
    return (*booking(), mark(Mark.FREEZE), wait("lost"), *lapsed(factor, *waits), END)


P4 = Scenario(
    id="P4",
    title="freeze for 777 s, an attempt every 60 s",
    n=1,
    group=Group.ROUND_2,
    loss=Loss.FREEZE,
    lapsed=(Variant(_until_dead(30), limit_s=150, longest_s=45),),
    real=(Variant(_until_dead(1), limit_s=960, longest_s=800),),
    expects=(
        *refusals(P4_ATTEMPTS + 1, 0, "P4: never resumed in 12.8 min"),
        DETECTED,
        within(
            Quantity.SILENT_UNTIL_S,
            478.0,
            490.0,
            "P4: a close at +489 s; B1: +479.0 to +479.4 s",
            slack=3.0,
            digits=0,
            why="the silence is counted from the last message before the loss, which is the profile's rule",
        ),
        exactly(Quantity.DEAD_CODE, 1011, "P4: a 53-byte close (1011)"),
        *booked(1, None, "P4"),
    ),
    study="never resumed in 12.8 min; the server's close (1011) at +489 s into the frozen link; attempts +244 to "
    "+454 s hung 10 s, which round 3 did not see again and this server does not do",
    minutes=True,
)

FROZEN = (N1, N2, N3, P4)
