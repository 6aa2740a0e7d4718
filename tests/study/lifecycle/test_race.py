import itertools
from collections.abc import Sequence

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED, Variant
from lab.live.lifecycle.endings import ClosedHere
from lab.live.lifecycle.stream import Stream
from lab.study.lifecycle import predictions, race
from lab.study.lifecycle.interleaving import Choose, every_order, prefer
from lab.study.lifecycle.race import CLOSE, CLOSE_FIRST_SESSION, ORDERS, RECEIVE, Outcome, as_json, once, rows


def by_order(variant: Variant, runs: int = 500) -> dict[str, tuple[int, int, int, int]]:
    return {
        row.order: (row.runs, row.reader_right, row.recorded_first, row.sends_right)
        for row in rows([variant], runs=runs)
    }


@pytest.mark.parametrize("first", [CLOSE, RECEIVE])
def test_the_labs_reader_ends_normally_and_the_first_end_stands(first: str) -> None:
    outcome = once(LAB, prefer(first))

    assert (outcome.reader_right, outcome.recorded_first, outcome.sends_right) == (True, True, True)


def test_ten_thousand_races_at_random_end_right_in_the_lab() -> None:
    assert by_order(LAB, 10_000)["at random"] == (10_000, 10_000, 10_000, 10_000)


def test_no_order_at_all_ends_wrong_in_the_lab() -> None:
    for order in ("every order", "every order, the server closes too"):
        runs, reader, recorded, sends = by_order(LAB)[order]
        assert runs >= 2
        assert reader == recorded == sends == runs


@pytest.mark.parametrize("variant", [PUBLISHED, REPAIRED])
def test_the_shares_that_are_predicted_of_random_races_are_those_of_all_orders(variant: Variant) -> None:
    drawn = list(itertools.product(race._OWN_CODES, (None, *race._SERVER_CODES)))
    total = [0.0, 0.0, 0.0]
    for own_code, server_code in drawn:

        def weighed(choose: Choose, own: int = own_code, server: int | None = server_code) -> tuple[float, Outcome]:
            chance = 1.0

            def noting(able: Sequence[str]) -> str:
                nonlocal chance
                chance /= len(able)
                return choose(able)

            found = once(variant, noting, own_code=own, server_code=server)
            return chance, found

        for chance, outcome in every_order(weighed):
            rights = (outcome.reader_right, outcome.recorded_first, outcome.sends_right)
            total = [share + chance * right / len(drawn) for share, right in zip(total, rights, strict=True)]

    assert total == pytest.approx(predictions.RANDOM_RIGHT)


@pytest.mark.parametrize("runs", [predictions.FEWEST_RACES, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_random_races_as_published_are_as_predicted(runs: int, seed: int) -> None:
    (row,) = [row for row in rows([PUBLISHED], runs=runs, seed=seed) if row.order == race.AT_RANDOM]

    assert predictions.race_as_predicted(row)


@pytest.mark.parametrize("variant", [PUBLISHED, REPAIRED])
def test_the_receive_that_finishes_first_gives_the_reader_the_wrong_end_as_published(variant: Variant) -> None:
    outcome = once(variant, prefer(RECEIVE))

    assert (outcome.reader_right, outcome.recorded_first, outcome.sends_right) == (False, False, False)


def test_the_close_that_finishes_first_still_has_its_end_overwritten_as_published() -> None:
    outcome = once(PUBLISHED, prefer(CLOSE))

    assert outcome.reader_right
    assert not outcome.recorded_first
    assert not outcome.sends_right


def test_the_same_race_with_the_users_own_code_is_harmless_as_published() -> None:
    outcome = once(PUBLISHED, prefer(RECEIVE), own_code=1001)

    assert outcome.reader_right
    assert outcome.sends_right


def test_the_rows_of_one_seed_are_the_same_twice() -> None:
    assert as_json(rows([PUBLISHED], runs=100)) == as_json(rows([PUBLISHED], runs=100))


@pytest.mark.parametrize("order", ORDERS)
def test_a_reader_that_is_never_told_is_wrong(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream without an error looked like a normal end once."""
    monkeypatch.setattr(Stream, "finish", lambda _: None)

    runs, reader, *_ = by_order(LAB)[order]

    assert reader < runs
    assert order != CLOSE_FIRST_SESSION or reader == 0


@pytest.mark.parametrize("order", ORDERS)
def test_a_reader_that_is_told_of_our_own_close_is_wrong(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(stream: Stream[object]) -> None:
        stream._finished = True
        stream.fail(lambda: ClosedHere("closed here"))
        stream._error = lambda: ClosedHere("closed here")
        stream._wake()

    monkeypatch.setattr(Stream, "finish", finish)

    runs, reader, *_ = by_order(LAB)[order]

    assert reader < runs
