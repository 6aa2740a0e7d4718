from hypothesis import given
from hypothesis import strategies as st

from lab.core.seqspace import IntervalSet, unwrap

Edges = st.tuples(st.booleans(), st.integers(-50, 50), st.integers(-50, 50))


@given(st.integers(-(2**40), 2**40), st.integers(-(2**31), 2**31 - 1))
def test_unwrap_finds_any_number_less_than_half_the_space_away(near: int, distance: int) -> None:
    assert unwrap((near + distance) & 0xFFFF_FFFF, near) == near + distance


def test_unwrap_follows_a_wrap_in_both_directions() -> None:
    assert unwrap(5, 0xFFFF_FFF0) == 0x1_0000_0005
    assert unwrap(0xFFFF_FFF0, 0x1_0000_0005) == 0xFFFF_FFF0


@given(st.lists(Edges, max_size=30))
def test_interval_set_is_a_set_of_numbers(steps: list[tuple[bool, int, int]]) -> None:
    intervals, model = IntervalSet(), set[int]()
    for put, low, high in steps:
        if put:
            intervals.add(low, high)
            model |= set(range(low, high))
        else:
            intervals.remove(low, high)
            model -= set(range(low, high))
        assert {n for a, b in intervals for n in range(a, b)} == model
        assert intervals.overlap(-20, 20) == len(model & set(range(-20, 20)))
        assert intervals.highest == (max(model) + 1 if model else None)


@given(st.lists(Edges, max_size=30))
def test_intervals_stay_apart_and_in_order(steps: list[tuple[bool, int, int]]) -> None:
    intervals = IntervalSet()
    for put, low, high in steps:
        (intervals.add if put else intervals.remove)(low, high)
        edges = [edge for interval in intervals for edge in interval]
        assert edges == sorted(set(edges))


def test_drop_below_forgets_what_is_lower() -> None:
    intervals = IntervalSet()
    intervals.add(0, 10)
    intervals.add(20, 30)

    intervals.drop_below(25)

    assert list(intervals) == [(25, 30)]


def test_a_full_set_forgets_its_lowest_interval() -> None:
    intervals = IntervalSet(limit=2)
    for low in (0, 10, 20):
        intervals.add(low, low + 5)

    assert list(intervals) == [(10, 15), (20, 25)]
