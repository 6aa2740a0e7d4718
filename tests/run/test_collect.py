"""What was closed too early, and what entered the hole and came out of it."""

from typing import Any, cast

from lab.core.flow import Endpoint
from lab.core.segment import Flag, Segment
from lab.run import collect as collecting
from lab.run.sides import Side
from tests.run.cases import segment, watched
from tests.run.fakes import CLIENT, SERVER


def test_a_fin_of_the_flow_before_the_cut_is_found_whatever_its_direction() -> None:
    fin = segment(99.5, Flag.ACK | Flag.FIN, back=True)
    later, others = fin._replace(time_s=101.0), fin._replace(destination=Endpoint(CLIENT.address, 41000))

    assert collecting._ended_early([fin, later, others], watched()) == 1
    closing = cast("Any", type("Spec", (), {"closes": True, "uplink": None}))
    assert collecting._ended_early([fin], watched(spec=closing)) is None


def passages(near: list[Segment], far: list[Segment], until: float) -> tuple[Any, Any]:
    sides = {"left": Side(near, []), "right": Side(far, [])}
    forward, back = collecting._passages(sides, watched(), until)
    return forward, back


def test_who_was_on_the_way_when_the_rules_were_read_last_is_not_counted_as_missing() -> None:
    dropped, late = segment(101.0, length=7), segment(102.5, length=7, seq=8)
    forward, back = passages([dropped, late], [], until=102.0)

    assert (forward.missing, back.missing) == ((dropped,), ())


def test_a_nudge_that_comes_out_has_crossed() -> None:
    nudged = Segment(102.0, CLIENT, SERVER, 0, 0, Flag.ACK, 0, 0)
    forward, _ = passages([nudged], [nudged._replace(time_s=102.00002)], until=102.5)

    assert forward.crossed == (nudged,)
