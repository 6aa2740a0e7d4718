"""What was closed too early, and what entered the hole and came out of it."""

from typing import Any, cast

from lab.core.fault import Cut, Fault, Placement
from lab.core.flow import Direction, Endpoint
from lab.core.segment import Flag, Segment
from lab.run import collect as collecting
from lab.run.sides import Side
from tests.run.cases import segment, watched
from tests.run.fakes import CLIENT, FLOW, SERVER


def test_a_fin_of_the_flow_before_the_cut_is_found_whatever_its_direction() -> None:
    fin = segment(99.5, Flag.ACK | Flag.FIN, back=True)
    later, others = fin._replace(time_s=101.0), fin._replace(destination=Endpoint(CLIENT.address, 41000))

    assert collecting._ended_early([fin, later, others], watched()) == 1
    closing = cast("Any", type("Spec", (), {"closes": True, "uplink": None}))
    assert collecting._ended_early([fin], watched(spec=closing)) is None


def passages(near: list[Segment], far: list[Segment], until: float) -> tuple[Any, Any]:
    sides = {"left": Side(near, []), "right": Side(far, [])}
    _, ways = collecting._as_the_ends_saw(sides, watched(), until)
    return ways[Direction.FORWARD], ways[Direction.RETURN]


def at_the_client(sides: dict[str, Side]) -> tuple[dict[str, Side], tuple[Any, ...]]:
    fault = Fault(FLOW, placement=Placement.CLIENT_SINK)
    seen, ways = collecting._as_the_ends_saw(sides, watched(fault=fault), until=110.0)
    return seen, (ways[Direction.FORWARD], ways[Direction.RETURN])


def test_who_was_on_the_way_when_the_rules_were_read_last_is_not_counted_as_missing() -> None:
    dropped, late = segment(101.0, length=7), segment(102.5, length=7, seq=8)
    forward, back = passages([dropped, late], [], until=102.0)

    assert (forward.missing, back.missing) == ((dropped,), ())


def test_a_nudge_that_comes_out_has_crossed() -> None:
    nudged = Segment(102.0, CLIENT, SERVER, 0, 0, Flag.ACK, 0, 0)
    forward, _ = passages([nudged], [nudged._replace(time_s=102.00002)], until=102.5)

    assert forward.crossed == (nudged,)


def test_a_way_that_was_not_cut_is_looked_at_too() -> None:
    sent, answer = segment(101.0, length=7), segment(101.1, length=7, back=True)
    sides = {"left": Side([sent], []), "right": Side([answer], [])}
    _, ways = collecting._as_the_ends_saw(sides, watched(fault=Fault(FLOW, Cut.FORWARD)), until=110.0)

    assert ways[Direction.RETURN].missing == (answer,)


def test_an_end_with_a_sink_has_sent_what_fell_into_it_and_has_not_received_what_came_in_the_dark() -> None:
    before, sunk = segment(99.0, length=7), segment(101.0, length=7, seq=8)
    heard, unheard = segment(99.1, length=7, back=True), segment(101.5, length=7, seq=8, back=True)
    captured = {
        "left": Side([before, heard, unheard], []),
        "right": Side([before, heard, unheard], []),
        "sink": Side([sunk], []),
    }

    sides, (forward, back) = at_the_client(captured)

    assert sides["left"].segments == [before, heard, sunk]
    assert sides["right"] is captured["right"]
    assert (forward.missing, forward.entered, back.missing, back.entered) == ((sunk,), 2, (unheard,), 2)
    assert (forward.crossed, back.crossed) == ((), ())


def test_what_passes_beside_the_sink_has_crossed() -> None:
    leaked = segment(101.0, length=7)
    captured = {
        "left": Side([leaked], []),
        "right": Side([leaked._replace(time_s=101.00002)], []),
        "sink": Side([], []),
    }

    _, (forward, _) = at_the_client(captured)

    assert (forward.crossed, forward.missing) == ((leaked,), ())
