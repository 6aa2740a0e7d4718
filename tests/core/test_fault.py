"""A fault says what it drops, direction by direction."""

from lab.core.fault import Cut, Matched, Placement
from lab.core.flow import Direction


def test_a_cut_drops_the_directions_that_it_says_in_the_order_of_their_rules() -> None:
    assert [cut.directions for cut in (Cut.BOTH, Cut.FORWARD, Cut.RETURN)] == [
        (Direction.FORWARD, Direction.RETURN),
        (Direction.FORWARD,),
        (Direction.RETURN,),
    ]


def test_what_matched_is_told_by_direction() -> None:
    matched = Matched(forward=3, return_=1)

    assert [matched.of(direction) for direction in Direction] == [3, 1]


def test_a_sink_takes_what_its_end_sends() -> None:
    sunk = {placement: placement.sunk for placement in Placement if placement.sunk is not None}

    assert sunk == {Placement.CLIENT_SINK: Direction.FORWARD, Placement.SERVER_SINK: Direction.RETURN}
