"""A front is the walk of every start followed alone, whatever the timer's rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.core.front import Front, highest, lowest, offsets
from lab.core.timerwheel import fires_at


@dataclass(frozen=True)
class Rule:
    """Waits that double, cut where a limit is near, and an end once enough time has elapsed."""

    first: int
    probe: int | None
    bound: int
    limit: int | None
    stamped: bool
    most: int

    def wait(self, copies: int) -> int:
        return self.first << min(copies, 12)

    def limited(self, copies: int, elapsed: int) -> int:
        wait = self.wait(copies)
        return wait if self.limit is None else min(wait, max(1, self.limit - elapsed))

    def together(self, front: Front) -> None:
        """Every start at once."""
        since = front.moment()
        if self.probe is not None:
            front.wait(self.probe)
        front.wait(self.first)
        since = since if self.stamped else front.moment()
        while front.alive:
            copies = len(front.copies)
            front.end_where(lambda elapsed: elapsed >= self.bound, since)
            if copies == self.most:
                front.end()
            if front.alive:
                front.copy()
                front.wait_within(self.wait(copies), partial(self.limited, copies), since)

    def alone(self, start: int, lag: int, shift: int) -> tuple[list[int], int]:
        """One start: its copies and its death, from the start."""
        now = start
        for wait in (self.probe, self.first):
            now = now if wait is None else fires_at(now, wait) + lag
        since, copies = start if self.stamped else now, list[int]()
        while now - since - shift < self.bound and len(copies) < self.most:
            copies.append(now - start)
            now = fires_at(now, self.limited(len(copies) - 1, now - since - shift)) + lag
        return copies, now - start


RULES = st.builds(
    Rule,
    first=st.one_of(st.integers(1, 70), st.integers(1, 5000)),
    probe=st.one_of(st.none(), st.integers(1, 600)),
    bound=st.one_of(st.integers(0, 300), st.integers(0, 40_000)),
    limit=st.one_of(st.none(), st.integers(0, 300), st.integers(0, 40_000)),
    stamped=st.booleans(),
    most=st.integers(0, 14),
)


@settings(deadline=None, max_examples=300)
@given(
    rule=RULES, count=st.integers(1, 130), stride=st.integers(1, 40), lag=st.integers(0, 1), shift=st.integers(-1, 1)
)
def test_a_front_goes_where_each_of_its_starts_goes_alone(
    rule: Rule, count: int, stride: int, lag: int, shift: int
) -> None:
    front = Front(count, stride, lag, shift)
    rule.together(front)
    alone = [rule.alone(tick, lag, shift) for tick in range(0, count * stride, stride)]

    assert_follows(front, alone)
    assert sum(len(offsets(runs, stride)) for runs in front.deaths.values()) == count
    for other in (-1, 0, 1):
        behind = Front(count, stride, lag, other, ahead=front)
        rule.together(behind)
        assert_follows(behind, [rule.alone(tick, lag, other) for tick in range(0, count * stride, stride)])


def assert_follows(front: Front, alone: Sequence[tuple[list[int], int]]) -> None:
    """See that the front is where these walks are."""
    assert len(front.copies) == max(len(copies) for copies, _ in alone)
    for index, runs in enumerate(front.copies):
        assert told(front, runs) == sorted(copies[index] for copies, _ in alone if index < len(copies))
    assert set(front.deaths) == {len(copies) for copies, _ in alone}
    for copies, runs in front.deaths.items():
        assert told(front, runs) == sorted(death for sent, death in alone if len(sent) == copies)
    gaps = [after - before for sent, death in alone for before, after in zip((0, *sent), (*sent, death), strict=True)]
    assert front.longest_gap == max(gaps)


def told(front: Front, runs: Any) -> list[int]:
    ordered = sorted(offsets(runs, front.stride))
    assert (ordered[0], ordered[-1]) == (lowest(runs, front.stride), highest(runs, front.stride))
    return ordered


def test_starts_that_have_met_are_followed_together() -> None:
    front = Front(512)
    widths = []
    for wait in (51, 102, 816, 6528):
        front.wait(wait)
        front.copy()
        widths.append(len(front.copies[-1]))
    assert widths == [1, 65, 9, 2]


def test_a_moment_before_the_start_counts_towards_the_time_elapsed() -> None:
    front = Front(8)
    since = front.moment(before=100)
    front.wait(10)
    front.end_where(lambda elapsed: elapsed >= 112, since)
    assert front.alive
    front.end_where(lambda elapsed: elapsed >= 111, since)
    assert not front.alive
