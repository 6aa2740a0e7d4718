"""The windows by which experiments judge instants, and how one experiment becomes several."""

import pytest

from lab.experiments.common import PROMPT_S, each_in_both, heard, one_send, within

WINDOW = (1.0, 2.0)


@pytest.mark.parametrize(("at", "holds"), [(0.98, False), (0.995, True), (1.5, True), (2.005, True), (2.02, False)])
def test_an_instant_on_the_wire_may_be_off_by_its_stamp(at: float, holds: bool) -> None:
    assert within(at, WINDOW) is holds


@pytest.mark.parametrize(
    ("at", "holds"), [(0.99, False), (1.0, True), (2.0 + PROMPT_S / 2, True), (2.01 + PROMPT_S, False)]
)
def test_what_a_program_heard_may_have_left_a_little_earlier_and_never_later(at: float, holds: bool) -> None:
    assert heard(at, WINDOW) is holds


def test_each_experiment_is_there_over_both_families_under_its_name() -> None:
    params = each_in_both({"one": one_send(), "other": one_send()})

    assert [param.id for param in params] == ["one-ipv4", "one-ipv6", "other-ipv4", "other-ipv6"]
    assert [param.values[0].ipv6 for param in params] == [False, True] * 2
