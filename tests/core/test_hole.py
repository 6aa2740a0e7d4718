"""What entered the hole, and what came out."""

from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.hole import Dark, passage
from lab.core.segment import Flag, Segment

CLIENT, SERVER = Endpoint("192.0.2.1", 40000), Endpoint("198.51.100.1", 5000)
FLOW = FourTuple(CLIENT, SERVER)
DARK = Dark(began_s=10.0, done_s=10.001, healed_s=20.0)


def seg(time_s: float, seq: int, length: int = 5, *, ip_id: int | None = 1, flags: int = Flag.ACK) -> Segment:
    return Segment(time_s, CLIENT, SERVER, seq, 1, flags, 500, length, ip_id=ip_id)


def test_a_segment_that_never_came_out_is_missing() -> None:
    near = [seg(9.0, 1), seg(11.0, 6, ip_id=2), seg(11.4, 6, ip_id=3)]
    seen = passage(near, [near[0]._replace(time_s=9.00001)], FLOW, Direction.FORWARD, DARK)
    assert [s.ip_id for s in seen.missing] == [2, 3]
    assert (seen.entered, seen.left, seen.crossed, seen.strangers) == (3, 1, (), ())


def test_a_segment_that_entered_in_the_dark_and_came_out_has_crossed() -> None:
    near = [seg(11.0, 6)]
    seen = passage(near, [near[0]._replace(time_s=11.00001)], FLOW, Direction.FORWARD, DARK)
    assert seen.crossed == (near[0],)


def test_a_segment_already_inside_the_router_at_the_commit_has_not_crossed() -> None:
    near = [seg(10.0005, 6)]
    seen = passage(near, [near[0]._replace(time_s=10.002)], FLOW, Direction.FORWARD, DARK)
    assert (seen.crossed, seen.missing) == ((), ())


def test_of_two_equal_packets_the_one_after_the_heal_came_out() -> None:
    near = [seg(11.0, 6, 0, ip_id=None), seg(21.0, 6, 0, ip_id=None)]
    seen = passage(near, [near[1]._replace(time_s=21.00001)], FLOW, Direction.FORWARD, DARK)
    assert [s.time_s for s in seen.missing] == [11.0]
    assert seen.crossed == ()


def test_what_comes_out_without_having_gone_in_is_a_stranger() -> None:
    seen = passage([], [seg(11.0, 6)], FLOW, Direction.FORWARD, DARK)
    assert len(seen.strangers) == 1


def test_the_time_to_live_that_the_router_lowers_does_not_hide_a_crossing() -> None:
    near = [seg(11.0, 6)._replace(ttl=64)]
    far = [near[0]._replace(time_s=11.1, ttl=63)]
    assert passage(near, far, FLOW, Direction.FORWARD, DARK).crossed
