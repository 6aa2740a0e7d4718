"""Every row does what its label says, repaired and defective, over both carriers."""

from collections import Counter

import pytest

from lab.host.machine.variant import VARIANTS
from lab.host.protocol.messages import CloseReason
from lab.host.tables import host_rows
from lab.host.tables.rows import Question, Row


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return host_rows()


def test_every_variant_does_what_its_label_says(rows: list[Row]) -> None:
    assert [row.as_dict() for row in rows if not row.ok] == []


def test_both_carriers_show_the_same(rows: list[Row]) -> None:
    def cases(carrier: str) -> list[tuple[str, str, bool]]:
        return [(row.case, row.variant, row.right) for row in rows if row.transport == carrier]

    assert cases("tcp") == cases("websocket") != []


def test_every_reason_is_told_and_every_defect_is_shown(rows: list[Row]) -> None:
    told = {row.seen.partition(":")[0] for row in rows if row.case.startswith("ended by") and row.right}

    assert told == {reason.name for reason in CloseReason}
    assert {row.variant for row in rows if row.defective} == set(VARIANTS) - {"repaired"}
    assert Counter(row.question for row in rows).keys() == set(Question)


def test_what_is_right_is_right_at_once_but_for_the_silent_simulator(rows: list[Row]) -> None:
    slow = {row.case for row in rows if row.right and row.after_s is not None and row.after_s >= 1.9}

    assert slow == {"the simulator says nothing more"}


def test_a_row_is_ok_when_it_is_wrong_where_it_has_to_be() -> None:
    def row(*, right: bool, defective: bool) -> Row:
        return Row(Question.CLOSING, "case", "variant", "tcp", "seen", 0.12349, right, defective)

    assert [row(right=r, defective=d).ok for r, d in ((True, False), (False, True), (True, True), (False, False))] == [
        True,
        True,
        False,
        False,
    ]
    assert row(right=True, defective=False).as_dict()["after_s"] == 0.1235
