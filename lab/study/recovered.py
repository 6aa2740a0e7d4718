"""Stage 2: packet loss, and the client's recovery after it; a plain resume loop to compare (BR0 to BR2)."""

from lab.study.ranges import (
    DETECTED,
    MACHINE_S,
    REFUSAL_HELD,
    booked,
    exactly,
    recovery_times,
    refusals,
    with_grain,
    within,
)
from lab.study.scenario import BackendPlan, Group, Loss, Mark, Quantity, Scenario, Step, Variant
from lab.study.steps import END, RECOVERED, TOLD, ask, booking, lapsed, mark, resume_every, speaking, wait

LOOP = 59
"""Attempts in 60 s, one per second: 118 in two sessions."""

IN_THE_WINDOW = 4
"""Attempts of the recovery's resume window."""

CUT = mark(Mark.CUT)


def recovered(before: tuple[Step, ...], *after: Step) -> tuple[Variant, ...]:
    """Lose the path, recover, let the model say what it has to say, ask."""
    return (Variant((*before, CUT, *RECOVERED, *(after or (TOLD,)), ask(), END), limit_s=90, longest_s=30),)


def _loop(factor: float) -> tuple[Step, ...]:
    return (*booking(), CUT, wait("lost"), *lapsed(factor, resume_every(1.0, LOOP)), END)


BR0 = Scenario(
    id="BR0",
    title="packet loss at R1's point; a plain resume loop, one attempt a second for 60 s",
    n=2,
    group=Group.STAGE_2,
    loss=Loss.PACKET_LOSS,
    lapsed=(Variant(_loop(4), limit_s=90, longest_s=30),),
    real=(Variant(_loop(1), limit_s=150, longest_s=75),),
    expects=(
        *refusals(LOOP, 0, "BR0: 118 of 118 in two sessions"),
        DETECTED,
        REFUSAL_HELD,
        exactly(Quantity.ANSWERED, 0, "BR0: the user is never told"),
        *booked(1, None, "BR0"),
    ),
    expects_lapsed=(with_grain(REFUSAL_HELD, 4),),
    study="118 of 118 refused; the user is never told",
)

BR1 = Scenario(
    id="BR1",
    title="packet loss at R1's point, with the recovery",
    n=4,
    group=Group.STAGE_2,
    loss=Loss.PACKET_LOSS,
    lapsed=recovered(booking(hold=False)),
    expects=(
        *refusals(IN_THE_WINDOW, 0, "BR1: 36 of 36 in nine sessions"),
        REFUSAL_HELD,
        *recovery_times(),
        within(Quantity.FALLBACK_S, 5.3, 5.9, "BR1: new session +5.3 to +5.9 s", digits=1),
        within(Quantity.FIRST_AUDIO_S, 6.10, 7.09, "BR1: first audio 6.10 to 7.09 s", digits=2),
        exactly(Quantity.REISSUED, 0, "BR1"),
        *booked(1, 1, "BR1"),
    ),
    study="window attempts all refused; new session +5.3..5.9 s; first audio 6.10 to 7.09 s after the loss; "
    "consistent 4/4; 0 re-issued",
)

BR2 = Scenario(
    id="BR2",
    title="packet loss 0.2 s after the first audio, model speaking, with the recovery",
    n=3,
    group=Group.STAGE_2,
    loss=Loss.PACKET_LOSS,
    lapsed=recovered(speaking(0.2, hold=False)),
    expects=(
        *refusals(IN_THE_WINDOW, 0, "BR2: 36 of 36 in nine sessions"),
        REFUSAL_HELD,
        *recovery_times(),
        within(
            Quantity.FIRST_AUDIO_S,
            6.52,
            7.08,
            "BR2: first audio 6.52 to 7.08 s",
            slack=0.45,
            slack_above=MACHINE_S,
            why="three sessions; the recovery is BR1's, which took 6.10 s too, and the machine's load adds to it",
            digits=2,
        ),
        exactly(Quantity.REISSUED, 0, "BR2"),
        *booked(1, 1, "BR2"),
    ),
    study="first audio 6.52 to 7.08 s; consistent 3/3; 0 re-issued",
    backend=BackendPlan(commit_after_s=7.0),
)

BR1_NO_NOTE = Scenario(
    id="BR1-no-note",
    title="as BR1, only the transcript is restored",
    n=2,
    group=Group.STAGE_2,
    loss=Loss.PACKET_LOSS,
    lapsed=recovered(booking(hold=False), wait("tool_call"), TOLD),
    expects=(
        *refusals(IN_THE_WINDOW, 0, "ablation: 36 of 36 in nine sessions"),
        REFUSAL_HELD,
        exactly(Quantity.REISSUED, 1, "ablation: 2/2"),
        within(Quantity.REISSUED_AFTER_S, 0.577, 0.858, "ablation: 577 and 858 ms after the restore"),
        within(
            Quantity.STILL_BOOKING_S,
            3.6,
            3.8,
            'ablation: "I\'m booking..." 3.6 to 3.8 s after the commit',
            slack=0.5,
            why="two sessions; where the last pong falls moves the detection, and all after it, by up to half a second",
            digits=1,
        ),
        *booked(1, 1, "ablation: 1 commit each; with BR1 and BR2, nine answers of nine agree"),
    ),
    study="the model re-issues the call with a new id 2/2 (577, 858 ms after the restore); deduplicated; \"I'm "
    'booking..." 3.6 to 3.8 s after the commit; 1 commit',
    policy={"note": False},
)

STAGE_TWO = (BR0, BR1, BR2, BR1_NO_NOTE)
