from dataclasses import replace

from tests.study.lifecycle.scenes import predicted


def test_every_table_is_held_to_its_prediction() -> None:
    tables = predicted()

    assert tables.failures == []
    assert replace(tables, leaks=[]).failures
    assert replace(tables, repeated=[]).failures
    assert replace(tables, limit=[]).failures
    assert replace(tables, race=[]).failures
    assert replace(tables, closes=[]).failures
    assert replace(tables, rules=[]).failures


def test_each_table_has_its_name() -> None:
    assert set(predicted().as_json()) == {"leaks", "repeated", "limit", "race", "closes", "rules"}


def test_each_row_of_each_table_says_whether_it_is_as_predicted() -> None:
    tables = predicted()
    spoilt = replace(
        tables,
        leaks=[replace(row, closed_in_s=9.0, ok=not row.ok) for row in tables.leaks],
        repeated=[replace(row, ok=False) for row in tables.repeated],
        limit=[replace(row, counted=5) for row in tables.limit],
        race=[replace(row, reader_right=-1, ok=False) for row in tables.race],
        closes=[replace(row, reader="?") for row in tables.closes],
        rules=[replace(row, ok=False) for row in tables.rules],
    )

    assert all(row["as_predicted"] for rows in tables.as_json().values() for row in rows)
    assert not any(row["as_predicted"] for key, rows in spoilt.as_json().items() for row in rows if key != "race")
    assert not all(row["as_predicted"] for row in spoilt.as_json()["race"])
