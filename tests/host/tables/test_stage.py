"""What counts as at once, and as waited for."""

import pytest

from lab.host.tables.stage import SESSION_END_S, TCP
from tests.host.tables.cases import HASTY


@pytest.mark.parametrize(
    ("took_s", "right"), [(0.001, True), (0.4, True), (0.7, True), (1.1, False), (1.9, False), (2.0, False)]
)
def test_what_comes_just_before_a_time_out_did_not_come_at_once(took_s: float, right: bool) -> None:
    assert TCP.at_once(took_s) is right


def test_what_waits_for_a_short_time_out_did_not_come_at_once() -> None:
    assert HASTY.at_once(HASTY.request_s / 2)
    assert not HASTY.at_once(HASTY.request_s)


@pytest.mark.parametrize(("over_s", "right"), [(-0.1, False), (0.0, True), (0.7, True), (1.5, False), (9.0, False)])
def test_what_takes_much_longer_than_a_time_out_waited_for_something_else(over_s: float, right: bool) -> None:
    assert TCP.sat_out(SESSION_END_S + over_s, SESSION_END_S) is right
