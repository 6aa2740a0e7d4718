"""What was expected beside what came: per quantity, per session, and per row of the table."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lab.study.outcome import Values
from lab.study.scenario import Count, Expected, Origin, Over, Quantity, Range, Scenario
from lab.study.statistics import median


class Standing(enum.Enum):
    """How what came stands to what was expected."""

    IN_RANGE = "in range"
    EXPLAINED = "outside, as explained"
    """Beyond the range, within the tolerance that has a reason."""

    OUT = "outside"
    MISSING = "missing"
    """It was expected, and nothing of the kind was seen."""

    @property
    def passed(self) -> bool:
        """Whether it is as modelled."""
        return self in (Standing.IN_RANGE, Standing.EXPLAINED)


@dataclass(frozen=True, slots=True)
class Session:
    """One session that was run, as it is kept in results/*.jsonl."""

    scenario: str
    number: int
    """From 0; says which of the scenario's scripts it had."""

    real: bool
    """With real waits."""

    values: Values
    invalid: tuple[str, ...] = ()
    """Why it proves nothing; empty where it does."""

    stuck: str | None = None
    """At which step its script went no further."""

    disturbed: bool = True
    """Whether what makes it INVALID is what a busy machine does: then it is worth another try."""

    defect: str | None = None
    """What went wrong inside a program that went on."""

    refuted: str | None = None
    """Where the kernels did not do what was predicted for the lost flow."""

    again: tuple[str, ...] = ()
    """Why earlier tries of it were INVALID: it was run once more for each."""

    took_s: float = 0.0
    """Wall seconds of the last try."""

    folder: str = ""

    @property
    def valid(self) -> bool:
        """Whether it counts."""
        return not self.invalid

    def total(self, quantity: Quantity) -> int:
        """A count of this session, 0 where it has none."""
        return int(sum(self.values.get(quantity, ())))


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation, and what came."""

    expected: Expected
    values: tuple[float, ...]
    """A count: one number per session. A time: all of them."""

    standing: Standing
    reason: str = ""
    """Why it is not in range."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    scenario: Scenario
    real: bool
    sessions: tuple[Session, ...]
    findings: tuple[Finding, ...]
    problems: tuple[str, ...] = field(default=())
    """What no range says: INVALID sessions, scripts that got stuck, a second booking."""

    @property
    def valid(self) -> tuple[Session, ...]:
        """The sessions that count."""
        return tuple(each for each in self.sessions if each.valid)

    @property
    def passed(self) -> bool:
        """Whether everything is as modelled: in range, or outside for the reason given."""
        return bool(self.valid) and not self.problems and all(each.standing.passed for each in self.findings)

    @property
    def in_range(self) -> bool | None:
        """Whether all lies in the study's ranges; None where the study gives nothing."""
        if not self.scenario.published:
            return None
        return self.passed and all(each.standing is Standing.IN_RANGE for each in self.findings)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not in range, or did not pass."""
        return (*self.problems, *(each.reason for each in self.findings if each.standing is not Standing.IN_RANGE))

    @property
    def failures(self) -> tuple[str, ...]:
        """Why it did not pass."""
        return (*self.problems, *(each.reason for each in self.findings if not each.standing.passed))

    @property
    def double_bookings(self) -> int:
        """Bookings beyond the first, over all sessions."""
        return sum(max(each.total(Quantity.BOOKINGS) - 1, 0) for each in self.valid)

    def total(self, quantity: Quantity) -> int:
        """A count over all sessions that count."""
        return sum(each.total(quantity) for each in self.valid)


def judge_session(scenario: Scenario, session: Session) -> tuple[Finding, ...]:
    """One session against what is expected of every single one; medians are the row's."""
    return tuple(
        _finding(each, (session,))
        for each in scenario.expected(real=session.real)
        if isinstance(each, Count) or each.over is Over.EACH
    )


def judge_row(scenario: Scenario, sessions: Sequence[Session], *, real: bool) -> Row:
    """All sessions of a scenario."""
    valid = [each for each in sessions if each.valid]
    findings = tuple(_finding(each, valid) for each in scenario.expected(real=real))
    return Row(scenario, real, tuple(sessions), findings, tuple(_problems(scenario, sessions)))


def rows_of(scenarios: Iterable[Scenario], sessions: Iterable[Session]) -> list[Row]:
    """Rows of sessions that were kept, in the order of the scenarios; those with real waits apart from the lapsed."""
    kept = list(sessions)
    groups = [
        (scenario, real, [each for each in kept if each.scenario == scenario.id and each.real is real])
        for scenario in scenarios
        for real in (False, True)
    ]
    return [judge_row(scenario, found, real=real) for scenario, real, found in groups if found]


def _problems(scenario: Scenario, sessions: Sequence[Session]) -> Iterator[str]:
    if not sessions:
        yield "no session was run"
    for each in sessions:
        if each.invalid:
            at = "" if each.stuck is None else f"; its script got stuck at {each.stuck}"
            yield f"session {each.number + 1} is INVALID: {'; '.join(each.invalid)}{at}"
        elif each.stuck is not None:
            yield f"session {each.number + 1} got stuck at {each.stuck}"
        elif each.refuted is not None:
            yield f"session {each.number + 1}: {each.refuted}"
        if each.defect is not None:
            yield f"session {each.number + 1}: {each.defect}"
        if each.valid and each.total(Quantity.BOOKINGS) > 1 and not scenario.wrong_on_purpose:
            yield f"session {each.number + 1} made {each.total(Quantity.BOOKINGS)} bookings"


def _finding(expected: Expected, sessions: Sequence[Session]) -> Finding:
    if isinstance(expected, Count):
        return _counted(expected, sessions)
    values = tuple(value for each in sessions for value in each.values.get(expected.quantity, ()))
    return _ranged(expected, values, sessions)


def _counted(expected: Count, sessions: Sequence[Session]) -> Finding:
    """Every session's count must be its own; equal sums do not make up for each other."""
    seen = tuple(float(each.total(expected.quantity)) for each in sessions if expected.quantity in each.values)
    missing = [each for each in sessions if not each.values.get(expected.quantity)]
    if missing or not sessions:
        return Finding(expected, seen, Standing.MISSING, f"{expected.quantity.value}: not counted")
    wrong = [each for each in sessions if each.total(expected.quantity) != expected.of(each.number)]
    if not wrong:
        return Finding(expected, seen, Standing.IN_RANGE)
    first = wrong[0]
    reason = (
        f"{expected.quantity.value}: {first.total(expected.quantity)} instead of {expected.of(first.number)} "
        f"in session {first.number + 1}{f' and {len(wrong) - 1} more' if wrong[1:] else ''} ({expected.source})"
    )
    return Finding(expected, seen, Standing.OUT, reason)


def _ranged(expected: Range, values: tuple[float, ...], sessions: Sequence[Session]) -> Finding:
    if not sessions or any(not _has(each, expected) for each in sessions):
        return Finding(expected, values, Standing.MISSING, f"{expected.quantity.value}: not seen in every session")
    if not values:
        return Finding(expected, values, Standing.IN_RANGE)
    judged = (median(values),) if expected.over is Over.MEDIAN else values
    if all(_beyond(expected, value) == 0 for value in judged):
        return Finding(expected, values, Standing.IN_RANGE)
    standing = Standing.EXPLAINED if all(_borne(expected, value) for value in judged) else Standing.OUT
    return Finding(expected, values, standing, _sentence(expected, judged, standing))


def _has(session: Session, expected: Range) -> bool:
    """Whether a session has the quantity, or has no occasion for it: none refused takes no time to refuse."""
    occasions = {
        Quantity.REFUSAL_S: Quantity.REFUSED,
        Quantity.RESUMED_S: Quantity.ACCEPTED,
        Quantity.ACCEPTANCE_S: Quantity.ACCEPTED,
        Quantity.ANNOUNCED_S: Quantity.ANSWERED,
    }
    occasion = occasions.get(expected.quantity)
    if occasion is not None and session.total(occasion) == 0:
        return True
    return bool(session.values.get(expected.quantity))


def _borne(expected: Range, value: float) -> bool:
    """Whether a value lies in the range, or within the tolerance of its side."""
    above = expected.slack if expected.slack_above is None else expected.slack_above
    return _beyond(expected, value) <= (above if value > expected.high else expected.slack)


def _beyond(expected: Range, value: float) -> float:
    """How far outside of the range a value lies."""
    rounded = round(value, expected.digits)
    return round(max(expected.low - rounded, rounded - expected.high, 0.0), expected.digits)


def _sentence(expected: Range, judged: Sequence[float], standing: Standing) -> str:
    what = f"median {expected.quantity.value}" if expected.over is Over.MEDIAN else expected.quantity.value
    low, high = min(judged), max(judged)
    seen = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
    by = "the study's" if expected.origin is Origin.STUDY else "predicted"
    why = f": {expected.why}" if standing is Standing.EXPLAINED else ""
    return f"{what} {seen}, {by} {expected.low:g} to {expected.high:g} ({expected.source}){why}"
