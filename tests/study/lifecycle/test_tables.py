from lab.live.lifecycle import LAB, PUBLISHED
from lab.study.lifecycle.leaks import LeakRow
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import rows as races
from lab.study.lifecycle.tables import Tables


def leak(variant: str, *, ok: bool) -> LeakRow:
    return LeakRow(variant, "developer-newer", "closed", 0.1 if ok else None, None, True, None, False, "none", ok)


def limited(variant: str, *, ok: bool) -> LimitRow:
    return LimitRow(variant, "developer-newer", 3, 8, None if ok else 4, "", 0, ok)


def tables(*, labs: bool = True, published: bool = False) -> Tables:
    return Tables(
        [leak(LAB.name, ok=labs), leak(PUBLISHED.name, ok=published)],
        [],
        [limited(LAB.name, ok=True), limited(PUBLISHED.name, ok=False)],
        races(runs=10),
        [],
    )


def test_the_labs_right_and_the_published_ones_wrong_are_what_was_predicted() -> None:
    assert tables().failures == []


def test_a_wrong_row_of_the_labs_is_a_failure() -> None:
    assert len(tables(labs=False).failures) == 1


def test_a_defect_that_does_not_show_is_a_failure_too() -> None:
    assert tables(published=True).failures == ["leaks: the defect did not show"]


def test_each_table_has_its_name() -> None:
    assert set(tables().as_json()) == {"leaks", "repeated", "limit", "race", "closes"}
