"""A row that does not show what it should is told, whatever else is right."""

from dataclasses import replace
from typing import Any

import pytest

from lab.live.lifecycle import LAB, PUBLISHED, REPAIRED
from lab.live.lifecycle.endings import Party
from lab.study.lifecycle import closes, predictions, race, ways
from tests.study.lifecycle.scenes import RUNS, closed, leak, limited, predicted, raced

OLDER = "developer-older"
LEAKED = leak(PUBLISHED.name, OLDER, ways.RELEASED)
SERVER_1001 = closes.End(closes.OPEN, closes.FRAME, Party.SERVER, 1001)


def test_what_was_predicted_is_no_contradiction() -> None:
    assert predicted().failures == []


@pytest.mark.parametrize("variant", [REPAIRED, LAB])
@pytest.mark.parametrize("path", ways.PATHS)
def test_a_repair_that_does_not_hold_on_one_path_is_one(variant: Any, path: str) -> None:
    assert not predictions.leaks_as_predicted(replace(leak(variant.name, OLDER, path), ok=False))


@pytest.mark.parametrize(
    "otherwise",
    [
        {"ok": True},
        {"closed_in_s": 0.2},
        {"stream_finished": True},
        {"stream_failed": True},
        {"service_kept": False},
        {"socket": "time_wait"},
        {"is_closed": [True]},
        {"server_limit_s": None},
        {"server_limit_s": 60},
        {"server_limit_s": 960},
    ],
    ids=str,
)
def test_a_leak_that_shows_in_another_way_is_one(otherwise: dict[str, Any]) -> None:
    assert predictions.leaks_as_predicted(LEAKED)
    assert not predictions.leaks_as_predicted(replace(LEAKED, **otherwise))


def test_a_row_that_is_missing_is_one() -> None:
    rows = predicted().leaks

    (said,) = predictions.leaks_wrong(rows[1:])
    assert said == f"leaks: no row for {rows[0].variant}, {rows[0].profile}, {rows[0].path}"


def test_a_row_that_is_there_twice_is_one_and_each_of_both_is_looked_at() -> None:
    rows = predicted().leaks
    right = rows[-1]
    named = f"{right.variant}, {right.profile}, {right.path}"

    assert list(predictions.leaks_wrong([*rows, right])) == [f"leaks: 2 rows for {named}"]
    twice, wrong = predictions.leaks_wrong([replace(right, ok=False), *rows])
    assert (twice, "ok=False" in wrong) == (f"leaks: 2 rows for {named}", True)


def test_one_of_a_hundred_is_one() -> None:
    rows = predicted().repeated

    assert len(list(predictions.repeated_wrong([replace(rows[0], closed=RUNS - 1), *rows[1:]], RUNS))) == 1
    assert len(list(predictions.repeated_wrong(rows, RUNS + 1))) == len(rows)


@pytest.mark.parametrize(
    ("variant", "otherwise"),
    [
        (PUBLISHED, {"refused_at": 5}),
        (PUBLISHED, {"refused_at": None}),
        (PUBLISHED, {"counted": 1}),
        (PUBLISHED, {"told": "ConnectionLost: gone"}),
        (REPAIRED, {"refused_at": 4}),
        (LAB, {"counted": 2}),
        (LAB, {"limit": None}),
    ],
    ids=str,
)
def test_the_limit_met_elsewhere_is_one(variant: Any, otherwise: dict[str, Any]) -> None:
    row = limited(variant.name, OLDER)

    assert predictions.limit_as_predicted(row)
    assert not predictions.limit_as_predicted(replace(row, **otherwise))


@pytest.mark.parametrize("order", race.ORDERS)
def test_a_race_that_comes_out_otherwise_is_one(order: str) -> None:
    labs, published = raced(LAB.name, order), raced(PUBLISHED.name, order)

    assert not predictions.race_as_predicted(replace(labs, ok=False))
    assert not predictions.race_as_predicted(
        replace(published, reader_right=published.runs, recorded_first=published.runs)
    )


@pytest.mark.parametrize(
    ("runs", "right"),
    [
        (10_000, (9_999, 2_667, 2_667)),
        (10_000, (6_667, 9_999, 2_667)),
        (10_000, (6_667, 2_667, 9_999)),
        (10_000, (6_667, 0, 0)),
        (10_000, (0, 2_667, 2_667)),
        (2, (1, 1, 1)),
    ],
)
def test_a_random_race_that_is_right_more_or_less_often_than_by_chance_is_one(
    runs: int, right: tuple[int, int, int]
) -> None:
    row = raced(PUBLISHED.name, race.AT_RANDOM)

    assert predictions.race_as_predicted(row)
    assert not predictions.race_as_predicted(race.RaceRow(row.variant, row.order, runs, *right, ok=False))


@pytest.mark.parametrize("client", [PUBLISHED, LAB])
@pytest.mark.parametrize("otherwise", [{"reader": "no error"}, {"sender": "-"}, {"is_closed": None}], ids=str)
def test_who_is_told_something_else_is_one(client: Any, otherwise: dict[str, Any]) -> None:
    rows = predicted().closes
    place = rows.index(closed(client.name, SERVER_1001))
    rows[place] = replace(rows[place], **otherwise)

    assert len(list(predictions.closes_wrong(rows))) == 1


def test_as_published_a_servers_1001_is_predicted_to_be_told_to_nobody() -> None:
    row = closed(PUBLISHED.name, SERVER_1001)

    assert (row.reader, row.sender, row.is_closed) == ("nothing", "no error", False)
