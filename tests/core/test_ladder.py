import pytest

from lab.core.ladder import ladder_of
from lab.core.segment_class import SegmentClass

TIMEOUT = SegmentClass.TIMEOUT_COPY


def cap(*steps_s: float) -> float | None:
    ladder = ladder_of(TIMEOUT, steps_s)
    assert ladder is not None
    return ladder.cap_s


def test_the_base_is_the_first_wait() -> None:
    ladder = ladder_of(TIMEOUT, (0.2, 0.4, 0.8))

    assert ladder is not None
    assert (ladder.base_s, ladder.cap_s, ladder.steps_s) == (0.2, None, (0.2, 0.4, 0.8))


def test_no_waits_no_ladder() -> None:
    assert ladder_of(TIMEOUT, ()) is None


@pytest.mark.parametrize(
    ("steps_s", "expected"),
    [
        ((0.2, 0.4, 0.8, 1.02, 1.02, 1.03), 1.02),
        ((53.2, 106.5, 120.8, 120.9), 120.9),
        ((1.0, 1.0, 1.0), 1.0),
        ((1.0, 1.0, 1.0, 1.0, 2.0, 4.0), None),
        ((0.2, 0.4), None),
        ((1.0, 1.0), None),
    ],
)
def test_the_cap_is_the_plateau_at_the_end(steps_s: tuple[float, ...], expected: float | None) -> None:
    assert cap(*steps_s) == expected


def test_there_is_no_cap_where_something_else_kept_the_waits_short() -> None:
    ladder = ladder_of(TIMEOUT, (0.2, 0.2, 0.2), capped=False)

    assert ladder is not None
    assert ladder.cap_s is None
