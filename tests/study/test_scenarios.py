import json

import pytest

from lab.core.errors import UsageError
from lab.study.ranges import BUSY, MACHINE_S, within
from lab.study.scenario import Count, Loss, Mark, Origin, Quantity, Range, Scenario, Variant
from lab.study.scenarios import PUBLISHED, SCENARIOS, find, sessions
from lab.study.steps import backing_off, lapse, lapsed, watch
from lab.study.sweep import SWEEP, offsets

ALL = list(SCENARIOS.values())


def by_name(scenario: Scenario) -> str:
    return scenario.id


def variants(scenario: Scenario) -> tuple[Variant, ...]:
    return (*scenario.lapsed, *scenario.real)


def test_the_study_has_43_sessions_in_four_rounds() -> None:
    counted: dict[str, int] = {}
    for scenario in PUBLISHED:
        counted[scenario.group.name] = counted.get(scenario.group.name, 0) + scenario.n

    assert sessions(PUBLISHED) == 43
    assert counted == {"ROUND_1": 17, "ROUND_2": 9, "ROUND_3": 6, "STAGE_2": 11}


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_every_script_is_json_and_comes_to_an_end(scenario: Scenario) -> None:
    for variant in variants(scenario):
        assert json.loads(json.dumps(list(variant.steps)))[-1] == {"do": "end"}
        assert variant.longest_s < variant.limit_s


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_every_lapse_ends_before_the_session_does(scenario: Scenario) -> None:
    for variant in variants(scenario):
        factors = [step["factor"] for step in variant.steps if step["do"] == "lapse"]
        assert not factors or factors[-1] == 1


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_real_waits_have_no_lapse_in_them(scenario: Scenario) -> None:
    assert not [step for variant in scenario.real for step in variant.steps if step["do"] == "lapse"]
    assert not [variant for variant in scenario.real if variant.kernel.factor != 1]


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_who_causes_the_loss_is_who_the_script_asks(scenario: Scenario) -> None:
    asked = {Mark(step["name"]) for variant in variants(scenario) for step in variant.steps if step["do"] == "mark"}
    dropped = {step["how"] for variant in variants(scenario) for step in variant.steps if step["do"] == "drop"}
    begins = {Loss.PACKET_LOSS: Mark.CUT, Loss.FREEZE: Mark.FREEZE, Loss.ADDRESS: Mark.MOVE_ADDRESS}

    assert (begins.get(scenario.loss) in asked) == scenario.loss.silent
    assert dropped == {Loss.ABORT: {"abort"}, Loss.CLOSE: {"close"}}.get(scenario.loss, set())


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_nobody_expects_a_second_booking_but_the_example_that_is_wrong_on_purpose(scenario: Scenario) -> None:
    (bookings,) = (each for each in scenario.expects if each.quantity is Quantity.BOOKINGS)

    assert isinstance(bookings, Count)
    assert (max(bookings.per_session) > 1) == bool(scenario.wrong_on_purpose)


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_a_row_has_the_study_s_figures_or_a_prediction_of_the_lab_s_own(scenario: Scenario) -> None:
    assert bool(scenario.study) == scenario.published
    assert bool(scenario.prediction) != scenario.published
    if not scenario.published:
        assert any(each.origin is Origin.LAB for each in scenario.expects)


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_no_quantity_is_expected_twice(scenario: Scenario) -> None:
    for real in (False, True):
        quantities = [each.quantity for each in scenario.expected(real=real)]
        assert len(quantities) == len(set(quantities))


def test_a_lapse_changes_some_expectations_and_keeps_the_others() -> None:
    b1 = find("B1")
    real, fast = ({each.quantity: each for each in b1.expected(real=real)} for real in (True, False))

    assert set(real) == set(fast)
    assert real[Quantity.REFUSED] == fast[Quantity.REFUSED]
    last, last_lapsed = real[Quantity.LAST_COPY_S], fast[Quantity.LAST_COPY_S]
    assert isinstance(last, Range)
    assert isinstance(last_lapsed, Range)
    assert last.slack < last_lapsed.slack


def test_the_sessions_of_a_row_take_its_scripts_in_turn() -> None:
    r1 = find("R1")

    assert r1.variant(0, real=False) is r1.lapsed[0]
    assert r1.variant(5, real=False) is r1.lapsed[1]
    assert r1.variant(1, real=True) is r1.lapsed[1], "without a lapse there is one form only"


def test_a_name_is_found_in_any_case_and_a_wrong_one_gets_the_nearest() -> None:
    assert find("br1-NO-note").id == "BR1-no-note"
    with pytest.raises(UsageError, match="did you mean BR1-parallel"):
        find("BR1-paralel")


@pytest.mark.parametrize("name", ["nope", "XX"])
def test_a_name_that_is_near_none_gets_no_suggestion(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        find(name)
    assert raised.value.fix == "`lab live run` without a name lists them."


def test_attempts_that_back_off_wait_from_refusal_to_attempt() -> None:
    assert backing_off((1, 2, 4), 0.5) == (0.0, 1.5, 4.0, 8.5)


def test_a_lapse_of_one_is_none() -> None:
    assert lapsed(1, watch(2)) == (watch(2),)
    assert lapsed(30, watch(2)) == (lapse(30), watch(2), lapse(1))


def test_the_sweep_tries_on_both_sides_of_every_settle_time() -> None:
    assert offsets(0.5) == (0.0, 0.35, 0.55, 1.6)
    assert [row.server.settings["settle_s"] for row in SWEEP] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    refused = [each for row in SWEEP for each in row.expects if each.quantity is Quantity.REFUSED]
    assert [sum(each.per_session) for each in refused if isinstance(each, Count)] == [0, *(2,) * 6]


def test_the_study_s_counts_come_out_of_the_sessions() -> None:
    def total(name: str, quantity: Quantity) -> int:
        row = find(name)
        (count,) = (each for each in row.expects if each.quantity is quantity)
        assert isinstance(count, Count)
        return sum(map(count.of, range(row.n)))

    names = ("R1", "N1", "N2", "B1", "B2", "BR0", "BR1", "BR2", "BR1-no-note")
    assert [total(name, Quantity.REFUSED) for name in names] == [4, 22, 18, 270, 180, 118, 16, 12, 8]
    assert [total(name, Quantity.CONSISTENT) for name in ("R0", "R1", "R2", "R3", "BR1", "BR2")] == [1, 3, 0, 3, 4, 3]


def test_a_tolerance_that_is_not_the_machine_s_needs_a_reason_of_its_own() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        within(Quantity.REFUSAL_S, 0.4, 0.5, "R1", slack=2 * MACHINE_S)

    assert within(Quantity.REFUSAL_S, 0.4, 0.5, "R1").why == BUSY


def test_a_tolerance_needs_a_reason_and_a_range_something_in_it() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Range(Quantity.REFUSAL_S, 0.4, 0.5, "R1", slack=0.1)
    with pytest.raises(ValueError, match="No range"):
        Range(Quantity.REFUSAL_S, 0.5, 0.4, "R1")
