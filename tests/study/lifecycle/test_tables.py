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
