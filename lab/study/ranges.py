"""Ranges that several rows share, each with the study's own figures behind it.

A row of the study is one to four sessions, so that its extremes say little of the next session. Where a rule pools
what several rows saw, the rule's range is taken, and named.
"""

from collections.abc import Sequence
from dataclasses import replace

from lab.study.scenario import Count, Expected, Origin, Over, Quantity, Range

MACHINE_S = 0.25
"""What two cores that run all sessions side by side may add to a time, seconds; a session in which a program ran later
than this is INVALID (``proofs``)."""

LAPSED_MEDIAN_S, LAPSED_MOST_S = 0.06, 3.0
"""What a busy machine may add to every wake-up in a lapse, and to a single one, seconds of the session: 2 ms and 100 ms
of the wall at thirtyfold. A refusal is some twenty wake-ups, one after the other; attempts are 10 s apart."""

BUSY = "the server draws from the study's own range, and the path, the programs and the machine's load add to that"
LAPSE_GRAIN = "a lapse multiplies what the programs themselves take: 10 ms of the wall are 0.3 s at thirtyfold"


def exactly(
    quantity: Quantity, per_session: int | tuple[int, ...], source: str, origin: Origin = Origin.STUDY
) -> Count:
    """A count, the same in every session or one for each in turn."""
    return Count(quantity, per_session if isinstance(per_session, tuple) else (per_session,), source, origin)


def refusals(
    refused: int | tuple[int, ...], accepted: int | tuple[int, ...], source: str, origin: Origin = Origin.STUDY
) -> tuple[Expected, ...]:
    """How many attempts to resume are refused and accepted in a session."""
    return (exactly(Quantity.REFUSED, refused, source, origin), exactly(Quantity.ACCEPTED, accepted, source, origin))


def booked(
    bookings: int, consistent: int | tuple[int, ...] | None, source: str, origin: Origin = Origin.STUDY
) -> tuple[Expected, ...]:
    """What the backend holds after a session, and how many answers agree with it; None where nobody asks."""
    found = [exactly(Quantity.BOOKINGS, bookings, source, origin)]
    if consistent is not None:
        found.append(exactly(Quantity.CONSISTENT, consistent, source, origin))
    return tuple(found)


def within(
    quantity: Quantity,
    low: float,
    high: float,
    source: str,
    *,
    slack: float = MACHINE_S,
    slack_above: float | None = None,
    why: str | None = None,
    over: Over = Over.EACH,
    origin: Origin = Origin.STUDY,
    digits: int = 3,
) -> Range:
    """A time, with what the machine may add; any other tolerance needs a reason of its own.

    Raises:
        ValueError: it has none.
    """
    reason = BUSY if why is None and slack == MACHINE_S else why or ""
    return Range(quantity, low, high, source, over, origin, slack, reason, slack_above, digits)


REFUSAL = within(Quantity.REFUSAL_S, 0.472, 0.704, "rule 2: 472 to 704 ms")
"""After an idle abort or clean close."""

REFUSAL_HELD = within(Quantity.REFUSAL_S, 0.460, 1.245, "B1: 460 to 1245 ms; rule 3: median 562 to 575 ms")
"""While the server holds the old connection."""

RESUMED = within(Quantity.RESUMED_S, 2.043, 2.294, "R0 to R3, P2, P3: 2043 to 2294 ms")
"""From an idle abort, by the second attempt."""

ACCEPTANCE = within(Quantity.ACCEPTANCE_S, 0.5, 0.609, "rule 4: 0.5 to 0.6 s; R4, N1, N2, B3: 507 to 609 ms")
"""From the attempt to the resumed session."""

DETECTED = within(Quantity.DETECTED_S, 1.49, 2.04, "recovery: detection 1.49 to 2.04 s", digits=2)

ANNOUNCED = within(Quantity.ANNOUNCED_S, 0.594, 0.754, "rule 7: 594 to 754 ms")


def with_grain(expected: Range, factor: float, *, median: bool = True) -> Range:
    """The same time measured in a lapse: the programs' own milliseconds count so many times.

    Args:
        expected: With real waits.
        factor: Of the lapse.
        median: Hold only the median against the range; single sessions' values bear the machine's load.
    """
    over = Over.MEDIAN if median else expected.over
    return replace(expected, over=over, slack=expected.slack + factor * 0.02, why=LAPSE_GRAIN)


def recovery_times(origin: Origin = Origin.STUDY, *, window: Sequence[float] = (3.55, 3.60)) -> tuple[Expected, ...]:
    """The recovery's own times (study.md, "The recovery")."""
    source = "recovery: times from the loss"
    return (
        DETECTED,
        within(
            Quantity.WINDOW_S,
            window[0],
            window[1],
            f"{source}: window 3.55 to 3.60 s",
            why="the fourth refusal ends it, which the path, the programs and the machine's load delay",
            origin=origin,
            digits=2,
        ),
        within(
            Quantity.NEW_SETUP_S, 0.25, 0.32, f"{source}: new session's setup 0.25 to 0.32 s", origin=origin, digits=2
        ),
        within(Quantity.SPEAKS_AFTER_S, 0.76, 1.20, f"{source}: first audio 0.76 to 1.20 s", origin=origin, digits=2),
    )
