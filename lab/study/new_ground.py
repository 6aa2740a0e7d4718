"""What the study left open, each with the lab's prediction from before its first run.

The predictions follow from the study's rules and from how Linux's TCP behaves; where one turns out wrong, the table
says so, and the prediction stays as it was.
"""

from lab.study.frozen import DETECTED_AFTER_S
from lab.study.ranges import DETECTED, booked, exactly, recovery_times, refusals, within
from lab.study.recovered import BR1, CUT, IN_THE_WINDOW, recovered
from lab.study.scenario import (
    LAPSED_KERNEL,
    BackendPlan,
    Group,
    Loss,
    Mark,
    Origin,
    Quantity,
    Scenario,
    ServerPlan,
    Step,
    Variant,
)
from lab.study.steps import END, RECOVER, RECOVERED, TOLD, ask, booking, lapsed, mark, say, speaking, wait, watch

LAB = Origin.LAB


def _after_close(factor: float) -> tuple[Step, ...]:
    waits = (watch(500.0 - DETECTED_AFTER_S), mark(Mark.HEAL), watch(45.0))
    return (*booking(hold=False), CUT, wait("lost"), *lapsed(factor, *waits), RECOVER, TOLD, ask(), END)


HEALED_AFTER_CLOSE = Scenario(
    id="healed-after-close",
    title="B1, the path back at +500 s, after the server's own close at +479 s; then the recovery",
    n=1,
    group=Group.NEW,
    loss=Loss.PACKET_LOSS,
    lapsed=(Variant(_after_close(30), limit_s=150, kernel=LAPSED_KERNEL, longest_s=40),),
    real=(Variant(_after_close(1), limit_s=700, longest_s=570),),
    prediction="The close (1011) arrives with its next copy, at most 30.2 s after the heal. The handle is dead: every "
    "resume is refused. A new session works. The commit is older than the note's 300 s by then, so that the note does "
    "not name it, the model issues the call again, and the ledger (600 s) answers it: one booking.",
    expects=(
        exactly(Quantity.DEAD_CODE, 1011, "rule 5", LAB),
        exactly(Quantity.ACCEPTED, 0, "rule 5", LAB),
        exactly(Quantity.REISSUED, 1, "rule 8; recovery 3 and 4", LAB),
        *booked(1, 1, "recovery 4", LAB),
    ),
    minutes=True,
)


def _after_give_up(heal_s: float, watch_s: float) -> tuple[Step, ...]:
    waits = (wait("mark", heal_s, timeout=heal_s + 30), mark(Mark.HEAL), watch(watch_s))
    return (*speaking(0.2, hold=False), CUT, *waits, RECOVER, TOLD, ask(), END)


HEALED_AFTER_GIVE_UP = Scenario(
    id="healed-after-give-up",
    title="B2, the path back after the server's TCP has given up; then the recovery",
    n=1,
    group=Group.NEW,
    loss=Loss.PACKET_LOSS,
    lapsed=(Variant(_after_give_up(8.0, 8.0), limit_s=120, kernel=LAPSED_KERNEL, longest_s=45),),
    real=(Variant(_after_give_up(200.0, 60.0), limit_s=400, longest_s=300),),
    prediction="The server's kernel knows the connection no more and answers the client's next copy with a reset "
    "(1006 for the client). The session stays locked: every resume is refused, a new session works, one booking.",
    expects=(
        exactly(Quantity.DEAD_CODE, 1006, "RFC 9293 3.10.7.1: a reset", LAB),
        *refusals(IN_THE_WINDOW, 0, "rule 3", LAB),
        *booked(1, 1, "recovery 3", LAB),
    ),
    backend=BackendPlan(commit_after_s=7.0),
    minutes=True,
)

FREEZE = mark(Mark.FREEZE)

AGAIN = (FREEZE, *RECOVERED, TOLD, ask(), watch(1.0))
"""A loss, and what comes of it."""

LOST_AGAIN = Scenario(
    id="lost-again",
    title="a second silent loss after a fallback (freeze proxy, twice)",
    n=2,
    group=Group.NEW,
    loss=Loss.FREEZE,
    lapsed=(
        Variant(
            (*booking(hold=False), *AGAIN * 2, END),
            limit_s=120,
            longest_s=45,
        ),
    ),
    prediction="As twice BR1: both windows refused (8 attempts), the second note still names the booking; both "
    "answers right, nothing issued again, one booking. Two sessions are left locked on the server.",
    expects=(
        *refusals(2 * IN_THE_WINDOW, 0, "rule 3, twice", LAB),
        exactly(Quantity.ANSWERED, 2, "recovery 3, twice", LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 2, "recovery 3", LAB),
    ),
)

PARALLEL = BR1.with_(
    id="BR1-parallel",
    title="as BR1, a new session opened beside the resume attempts; the first that is ready wins",
    group=Group.NEW,
    study="",
    policy={"parallel": True},
    prediction="The new session is ready 0.25 to 0.32 s after detection and wins: first audio 2.5 to 3.6 s after the "
    "loss, 3.5 s sooner than BR1. One attempt is refused or given up; nothing is left open but the lost session.",
    expects=(
        DETECTED,
        within(Quantity.FIRST_AUDIO_S, 2.5, 3.6, "BR1 less its window of 3.55 to 3.60 s", origin=LAB),
        exactly(Quantity.ACCEPTED, 0, "rule 3", LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 1, "recovery 3", LAB),
    ),
)

LATE = BackendPlan(commit_after_s=12.0)
"""Some 4 s after the restore."""

COMMIT_LATER = BR1.with_(
    id="BR1-late-commit",
    title="as BR1, the backend commits after the restore",
    n=2,
    group=Group.NEW,
    study="",
    lapsed=recovered(booking(hold=False), TOLD, wait("update_note"), TOLD),
    backend=LATE,
    prediction="The note says that the booking is still being processed; nothing is issued again. After the commit an "
    "update note tells the model once it is idle; the answer is right.",
    expects=(
        *refusals(IN_THE_WINDOW, 0, "rule 3", LAB),
        exactly(Quantity.UPDATED, 1, "recovery 3", LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 1, "recovery 3", LAB),
    ),
)

PENDING_DUPLICATE = COMMIT_LATER.with_(
    id="BR1-duplicate",
    title="as BR1 without the note, the backend commits after the call was issued again",
    lapsed=recovered(booking(hold=False), wait("tool_call"), wait("committed", 5.0)),
    policy={"note": False},
    prediction="The second call finds the first one's job pending, waits for it, and is answered from it: one booking, "
    "and an answer that knows of it.",
    expects=(
        *refusals(IN_THE_WINDOW, 0, "rule 3", LAB),
        exactly(Quantity.REISSUED, 1, "rule 8", LAB),
        *booked(1, 1, "recovery 4", LAB),
    ),
)

NO_DEDUPE = BR1.with_(
    id="BR1-no-dedupe",
    title="WRONG ON PURPOSE: as BR1 without the note, and without deduplication",
    n=1,
    group=Group.NEW,
    study="",
    lapsed=recovered(booking(hold=False), wait("tool_call", 7.0)),
    policy={"note": False, "dedupe": False},
    prediction="The call that the model issues again runs again: two bookings. This is what the ledger is for.",
    expects=(
        exactly(Quantity.REISSUED, 1, "rule 8", LAB),
        exactly(Quantity.BOOKINGS, 2, "no deduplication", LAB),
    ),
    wrong_on_purpose="a call that is issued again runs again: two bookings",
)

ADDRESS = BR1.with_(
    id="BR1-address",
    title="as BR1, the client's address changes instead: the old four-tuple can never come back",
    n=2,
    group=Group.NEW,
    study="",
    loss=Loss.ADDRESS,
    lapsed=(
        Variant(
            (*booking(hold=False), mark(Mark.MOVE_ADDRESS), *RECOVERED, TOLD, ask(), END), limit_s=90, longest_s=25
        ),
    ),
    prediction="Nobody tells the server, so that it is as BR1: four attempts refused, a new session, first audio 6.1 "
    "to 7.1 s after the loss, one booking.",
    expects=(
        *refusals(IN_THE_WINDOW, 0, "rule 3", LAB),
        *recovery_times(LAB),
        within(Quantity.FIRST_AUDIO_S, 6.10, 7.09, "as BR1", origin=LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 1, "recovery 3", LAB),
    ),
)

SPEECH_IN_THE_GAP = BR1.with_(
    id="BR1-speech-in-gap",
    title="as BR1, the user speaks in the gap; buffered, and replayed into the new session",
    n=2,
    group=Group.NEW,
    study="",
    lapsed=(
        Variant(
            (*booking(hold=False), CUT, say("follow-up"), *RECOVERED, TOLD, TOLD, ask(), END), limit_s=100, longest_s=35
        ),
    ),
    replay_speech=True,
    prediction="What was spoken since the loss is heard once, in the new session, and answered; one booking.",
    expects=(
        exactly(Quantity.HEARD_AGAIN, 1, "the replay", LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 1, "recovery 3", LAB),
    ),
)
LIMIT = 3
"""Concurrent sessions that the server allows: the free tier's, in older threads."""

LIMIT_REACHED = Scenario(
    id="limit",
    title="three lost sessions, one after the other, against a limit of three",
    n=1,
    group=Group.NEW,
    loss=Loss.FREEZE,
    lapsed=(
        Variant(
            (*booking(hold=False), *(FREEZE, *RECOVERED, watch(1.0)) * 2, FREEZE, *RECOVERED, END),
            limit_s=120,
            longest_s=35,
        ),
    ),
    prediction="Lost sessions stay locked and count: after two fallbacks three are held, and the third fallback is "
    "refused (1011, RESOURCE_EXHAUSTED) until the silence close frees one after 480 s. The recovery gives up and says "
    "so; one booking.",
    expects=(
        exactly(Quantity.ACCEPTED, 0, "rule 3", LAB),
        exactly(Quantity.GAVE_UP, 1, "the limit", LAB),
        exactly(Quantity.GAVE_UP_AT_LIMIT, 1, "the limit", LAB),
        *booked(1, None, "recovery 3", LAB),
    ),
    server=ServerPlan(settings={"concurrent_limit": LIMIT}),
)

JITTERS = 40
"""Instants of the loss, taken in turn."""

GOLDEN = 0.6180339887
"""Multiples of the golden ratio, modulo 1, fill an interval evenly however many are taken."""

JITTER_S = (0.1, 5.5)
"""The loss comes so long after the call: before the commit at 4.0 s, at it, and while the model announces it."""


def _jittered(k: int) -> Variant:
    low, high = JITTER_S
    plus = round(low + (high - low) * (k * GOLDEN % 1.0), 3)
    return recovered(booking(plus, hold=False))[0]


MANY = BR1.with_(
    id="BR1-many",
    title="BR1 with the loss at many instants, from 0.1 to 5.5 s after the call",
    n=200,
    group=Group.NEW,
    study="",
    lapsed=tuple(map(_jittered, range(JITTERS))),
    prediction="One booking in every session, whenever the loss comes; no call issued again; the gap's 5 % and 95 % "
    "quantiles lie within 5.9 and 7.6 s.",
    expects=(
        within(Quantity.FIRST_AUDIO_S, 5.9, 7.6, "BR1's times, detection as the pings fall", origin=LAB),
        exactly(Quantity.REISSUED, 0, "rule 8", LAB),
        *booked(1, 1, "recovery 3 and 4", LAB),
    ),
    brief=10,
)

NEW_GROUND = (
    HEALED_AFTER_CLOSE,
    HEALED_AFTER_GIVE_UP,
    LOST_AGAIN,
    PARALLEL,
    COMMIT_LATER,
    PENDING_DUPLICATE,
    NO_DEDUPE,
    ADDRESS,
    SPEECH_IN_THE_GAP,
    LIMIT_REACHED,
    MANY,
)
