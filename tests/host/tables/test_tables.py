"""A row that is not as predicted counts where the machine had time, and proves nothing where it had not."""

from collections.abc import Sequence

import pytest

from lab.core.errors import InvalidRun
from lab.host import tables
from lab.host.tables import LATE_S, host_rows
from lab.host.tables.rows import Question, Row
from lab.host.tables.stage import Carrier

GOOD = Row(Question.CLOSING, "case", "variant", "tcp", "told", 0.1, True, False)
WRONG = Row(Question.CLOSING, "ended", "variant", "tcp", "not told", 0.1, False, False)


def measured(monkeypatch: pytest.MonkeyPatch, rows: list[Row], late_s: float) -> list[Row]:
    async def watched(_carriers: Sequence[Carrier]) -> tuple[list[Row], float]:
        return rows, late_s

    monkeypatch.setattr(tables, "_watched", watched)
    return host_rows()


def test_a_wrong_row_of_a_machine_that_had_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, [GOOD, WRONG], LATE_S) == [GOOD, WRONG]


def test_good_rows_need_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, [GOOD], 2 * LATE_S) == [GOOD]


def test_a_wrong_row_of_a_machine_that_had_none_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InvalidRun, match=r"1 of 2 rows of the hosts are not as predicted.*'ended'.*ran up to 0.20 s late"
    ):
        measured(monkeypatch, [GOOD, WRONG], 2 * LATE_S)
