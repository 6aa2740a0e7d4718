"""Round 1: the client's program aborts or closes the connection, and the server is told (R0 to R4, P1 to P3)."""

from lab.study.ranges import ACCEPTANCE, ANNOUNCED, REFUSAL, RESUMED, booked, exactly, refusals, within
from lab.study.scenario import BackendPlan, Group, Loss, Quantity, Scenario, Step, Variant
from lab.study.steps import END, ask, booking, drop, report, resume, say, speaking, wait, watch

RETRY_S = 1.6
"""The second attempt starts this long after the first: a refusal of about 0.6 s, then 1.0 s."""

AGAIN = resume(0, RETRY_S)

TRANSPARENT: Step = {"do": "connect", "transparent": True, "may_fail": True}
"""P1: a field on the wire that the developer endpoint does not know."""

R0 = Scenario(
    id="R0",
    title="abort after a greeting, no call pending",
    n=1,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(
        Variant((say("hello"), wait("turn_complete", 1.0), drop("abort"), AGAIN, watch(2.0), ask(), END), limit_s=60),
    ),
    expects=(*refusals(1, 1, "R0"), REFUSAL, RESUMED, *booked(0, 1, "R0")),
    study="first resume 1011 after 704 ms, second accepted, 2285 ms in all; says that nothing is booked; consistent",
)

R1 = Scenario(
    id="R1",
    title="abort 1.0 s after the call, model idle; result sent after the resume",
    n=4,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(
        Variant((*booking(), drop("abort"), resume(0), wait("committed"), END), limit_s=60),
        *(Variant((*booking(), drop("abort"), AGAIN, *report()), limit_s=60),) * 3,
    ),
    expects=(
        *refusals(1, (0, 1, 1, 1), "R1: run 1 had no retry"),
        REFUSAL,
        RESUMED,
        ANNOUNCED,
        *booked(1, (0, 1, 1, 1), "R1"),
    ),
    study="immediate resume refused 4/4, retry accepted 3/3 (run 1 had none), 2097 to 2294 ms; consistent 3/3",
)

R2 = Scenario(
    id="R2",
    title="as R1, the result is never sent",
    n=3,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(Variant((*booking(), drop("abort"), AGAIN, watch(2.0), ask(), END), limit_s=60),),
    expects=(
        *refusals(1, 1, "R2"),
        REFUSAL,
        RESUMED,
        *booked(1, 0, "R2"),
        within(
            Quantity.BEHIND_S,
            2.9,
            3.1,
            "R2: 2.9 to 3.1 s after the commit",
            digits=1,
        ),
    ),
    study='resumed 3/3 on the second try; says "in progress" 2.9 to 3.1 s after the commit; consistent 0/3',
)

R3 = Scenario(
    id="R3",
    title="abort 0.5 s after the commit, before the result is sent",
    n=3,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(Variant((*booking(0), wait("committed", 0.5), drop("abort"), AGAIN, *report()), limit_s=60),),
    expects=(*refusals(1, 1, "R3"), REFUSAL, RESUMED, ANNOUNCED, *booked(1, 1, "R3")),
    study="second try, 2043 to 2241 ms; consistent 3/3",
)

R4 = Scenario(
    id="R4",
    title="abort 1.0 s after the first audio of an answer, model speaking",
    n=3,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(Variant((*speaking(1.0), drop("abort"), AGAIN, *report()), limit_s=60),),
    expects=(
        *refusals(0, 1, "R4"),
        ACCEPTANCE,
        within(Quantity.RESUMED_S, 0.537, 0.609, "R4: 537 to 609 ms"),
        *booked(1, 1, "R4"),
    ),
    study="immediate resume accepted 3/3, 537 to 609 ms; cut sentence partly redone 2/3; consistent 3/3",
    backend=BackendPlan(commit_after_s=7.0),
)

P1 = Scenario(
    id="P1",
    title="a field that the server does not know: transparent",
    n=1,
    group=Group.ROUND_1,
    loss=Loss.NONE,
    lapsed=(Variant((TRANSPARENT, END), limit_s=30, longest_s=3),),
    expects=(exactly(Quantity.SETUP_CLOSED, 1007, "P1"), *booked(0, None, "P1")),
    study="setup closed 1007, unknown name transparent",
)

P2 = Scenario(
    id="P2",
    title="as R1 with a clean close, code 1000",
    n=1,
    group=Group.ROUND_1,
    loss=Loss.CLOSE,
    lapsed=(Variant((*booking(), drop("close"), AGAIN, *report()), limit_s=60),),
    expects=(*refusals(1, 1, "P2"), REFUSAL, RESUMED, *booked(1, None, "P2")),
    study="as an abort: first try 1011, resumed after 2137 ms",
)

P3 = Scenario(
    id="P3",
    title="as R1, a single attempt 1.6 s after the abort",
    n=1,
    group=Group.ROUND_1,
    loss=Loss.ABORT,
    lapsed=(Variant((*booking(), drop("abort"), resume(RETRY_S), *report()), limit_s=60),),
    expects=(*refusals(0, 1, "P3"), RESUMED, *booked(1, None, "P3")),
    study="accepted at once, resumed after 2221 ms",
)

ROUND_ONE = (R0, R1, R2, R3, R4, P1, P2, P3)
