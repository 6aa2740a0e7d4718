"""Round 3: the flow's packets vanish in the router, and the client has nothing but resume attempts (B1 to B3)."""

from lab.study.frozen import DETECTED_AFTER_S, EACH_WAIT, REFUSED_IN_S
from lab.study.ranges import ACCEPTANCE, DETECTED, REFUSAL_HELD, booked, refusals, with_grain, within
from lab.study.scenario import LAPSED_KERNEL, BackendPlan, Group, Loss, Mark, Quantity, Scenario, Step, Variant
from lab.study.steps import (
    CLOSE_OLD,
    END,
    booking,
    lapsed,
    mark,
    report,
    resume,
    resume_every,
    speaking,
    wait,
    watch,
)

QUARTER = 90
"""Attempts in 15 minutes, one every 10 s."""

KERNEL_SHAPE = "the lab's study-server profile has its last copy 114 to 117 s after the original, as the study's text"
LAPSED_COPIES = "a thirtyfold kernel sends nine or ten: no tail-loss probe, and first waits that ticks of 4 ms stretch"
LAPSED_SHAPE = "a thirtyfold kernel rounds its first waits to ticks of 4 ms, a tenth of a second each in session time"


def _dark(before: tuple[Step, ...], factor: float) -> tuple[Step, ...]:
    return (*before, mark(Mark.CUT), wait("lost"), *lapsed(factor, resume_every(10.0, QUARTER), watch(8.0)), END)


def _both(before: tuple[Step, ...]) -> tuple[Variant, Variant]:
    """Lapsed, and with real waits."""
    return (
        Variant(_dark(before, 30), limit_s=150, kernel=LAPSED_KERNEL, longest_s=50),
        Variant(_dark(before, 1), limit_s=1080, longest_s=920),
    )


_B1_LAPSED, _B1_REAL = _both(booking())

B1 = Scenario(
    id="B1",
    title="packet loss at R1's point, model idle; an attempt every 10 s for 15 min",
    n=3,
    group=Group.ROUND_3,
    loss=Loss.PACKET_LOSS,
    lapsed=(_B1_LAPSED,),
    real=(_B1_REAL,),
    expects=(
        *refusals(QUARTER, 0, "B1: 90 of 90 per run"),
        DETECTED,
        REFUSAL_HELD,
        within(
            Quantity.SILENT_UNTIL_S,
            479.0,
            479.4,
            "B1: silent until +479.0 to +479.4 s",
            slack=1.5,
            digits=1,
            why="480 s from the last message before the loss, which came up to a second before it",
        ),
        within(Quantity.COPIES, 11, 11, "B1: 11 copies", slack=0),
        within(
            Quantity.LAST_COPY_S,
            596.2,
            596.5,
            "B1: last copy +596.2 to +596.5 s",
            slack=4.5,
            digits=1,
            why=KERNEL_SHAPE,
        ),
        *booked(1, None, "B1"),
    ),
    expects_lapsed=(
        with_grain(REFUSAL_HELD, 30),
        within(
            Quantity.SILENT_UNTIL_S,
            479.0,
            479.4,
            "B1: silent until +479.0 to +479.4 s",
            slack=4.0,
            digits=1,
            why="as with real waits, and a tenth of a second of the wall is 3 s here",
        ),
        within(Quantity.COPIES, 11, 11, "B1: 11 copies", slack=2, slack_above=0, why=LAPSED_COPIES),
        within(
            Quantity.LAST_COPY_S,
            596.2,
            596.5,
            "B1: last copy +596.2 to +596.5 s",
            slack=20.0,
            digits=1,
            why=LAPSED_SHAPE,
        ),
    ),
    study="90 of 90 refused per run, 460 to 1245 ms; server silent until +479.0..479.4 s, then its close, copied 11 "
    "times, last copy +596.2..596.5 s; never RST or FIN",
    minutes=True,
)

_RUN_1, _RUN_2 = _both(speaking(1.0)), _both(speaking(0.2))

B2 = Scenario(
    id="B2",
    title="packet loss 1.0 s and 0.2 s after the first audio, model speaking; an attempt every 10 s for 15 min",
    n=2,
    group=Group.ROUND_3,
    loss=Loss.PACKET_LOSS,
    lapsed=(_RUN_1[0], _RUN_2[0]),
    real=(_RUN_1[1], _RUN_2[1]),
    expects=(
        *refusals(QUARTER, 0, "B2: 90 of 90 per run"),
        DETECTED,
        REFUSAL_HELD,
        within(Quantity.COPIES, 11, 11, "B2: 11, a tail-loss probe and 10", slack=1, why="with or without a probe"),
        within(
            Quantity.LAST_COPY_S, 114.8, 119.3, "B2: until +119.3 s and +114.8 s", slack=2.0, digits=1, why=KERNEL_SHAPE
        ),
        *booked(1, None, "B2"),
    ),
    expects_lapsed=(
        with_grain(REFUSAL_HELD, 30),
        within(Quantity.COPIES, 11, 11, "B2: 11, a tail-loss probe and 10", slack=2, slack_above=0, why=LAPSED_COPIES),
        within(
            Quantity.LAST_COPY_S,
            114.8,
            119.3,
            "B2: until +119.3 s and +114.8 s",
            slack=20.0,
            digits=1,
            why=LAPSED_SHAPE,
        ),
    ),
    study="90 of 90 refused; retransmissions until +119.3 s / +114.8 s (11 / probe and 10 copies), then silence",
    backend=BackendPlan(commit_after_s=7.0),
    minutes=True,
)


def _path_back(factor: float) -> tuple[Step, ...]:
    """Nine attempts, one every 10 s, three of them in the dark; then a close on the old connection and a tenth."""
    waits = (
        resume_every(10.0, 3),
        watch(30.0 - DETECTED_AFTER_S - 20.0 - REFUSED_IN_S),
        mark(Mark.HEAL),
        resume(*(DETECTED_AFTER_S + 10.0 * k for k in range(6))),
    )
    closing = (CLOSE_OLD, wait("closed"), resume(0))
    return (*booking(), mark(Mark.CUT), wait("lost"), *lapsed(factor, *waits), *closing, *report())


B3 = Scenario(
    id="B3",
    title="packet loss for 30 s at R1's point, attempts every 10 s; the path alone does not unlock, a close does",
    n=1,
    group=Group.ROUND_3,
    loss=Loss.PACKET_LOSS,
    lapsed=(Variant(_path_back(6), limit_s=120, longest_s=40),),
    real=(Variant(_path_back(1), limit_s=240, longest_s=110),),
    expects=(
        *refusals(9, 1, "B3: 9 of 9, then accepted"),
        DETECTED,
        REFUSAL_HELD,
        within(
            Quantity.CLOSE_ECHO_S,
            0.0,
            0.014,
            "B3: echoed in 14 ms",
            slack=0.1,
            why="the study's path had a round trip of its own; here the machine's load decides",
        ),
        ACCEPTANCE,
        within(Quantity.RESULT_AGE_S, 82.0, 85.0, "B3: a call issued 83.6 s earlier", slack=2.0, why=EACH_WAIT),
        *booked(1, 1, "rule 7"),
    ),
    expects_lapsed=(with_grain(REFUSAL_HELD, 6),),
    study="refused 9/9 with the path back and the old connection carrying traffic; close echoed in 14 ms; next "
    "attempt accepted 507 ms later; result of a call issued 83.6 s earlier accepted",
)

PACKET_LOSS = (B1, B2, B3)
