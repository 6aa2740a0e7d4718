import io
from typing import Any

import pytest
from rich.console import Console

from lab.report.record import Bystander, Check, FlowRecord, Outcome, Record
from lab.report.summary import summarise
from lab.report.text import as_text
from tests.report.cases import CASES, both_ways

CHECKS = (Check(name="bystander", ok=True), Check(name="captures-complete", ok=False, detail="3 dropped [left]"))


def printed(record: Record, *, encoding: str = "utf-8", verbose: bool = False) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=80, markup=False).print(as_text(summarise(record), verbose=verbose))
    file.seek(0)
    return file.read()


@pytest.mark.parametrize("case", sorted(CASES))
def test_it_fits_80_columns_and_starts_with_the_verdict(case: str) -> None:
    record, _ = CASES[case]()
    lines = printed(record).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(record.outcome.value.upper())


def test_rows_do_not_wrap_in_an_ordinary_run() -> None:
    lines = printed(both_ways()[0]).splitlines()
    gave_up = ["gave", "up", "14.64", "to", "15.27", "s", "14.95", "s", "14.89", "to", "15.52", "s", "15.21", "s"]
    assert gave_up in [line.split() for line in lines]


def test_without_a_terminal_there_are_no_escapes() -> None:
    assert "\x1b" not in printed(both_ways()[0])


def test_a_terminal_that_knows_ascii_only_can_show_it() -> None:
    assert printed(both_ways()[0], encoding="ascii").isascii()


def test_failed_checks_are_listed_and_all_of_them_when_asked() -> None:
    record = Record(outcome=Outcome.INVALID, backend="netns", checks=CHECKS)
    assert "check FAILED   captures-complete: 3 dropped [left]" in printed(record)
    assert "check ok" not in printed(record)
    every = printed(record, verbose=True)
    assert every.index("check FAILED") < every.index("check ok       bystander")


def test_a_run_that_a_busy_machine_has_spoilt_is_worth_repeating() -> None:
    record = Record(outcome=Outcome.INVALID, reason="captures-complete", disturbed=True, backend="netns", checks=CHECKS)
    said = "INVALID: captures-complete; the machine was too busy for this run: run it again"
    assert " ".join(printed(record).split()).startswith(said)
    assert "busy" not in printed(record.model_copy(update={"disturbed": False}))


def test_doubts_are_shown() -> None:
    record = _with(
        observation=both_ways()[0].observation.model_copy(update={"bystander": Bystander(alive=True, lost=1)})
    )
    assert "doubt          the bystander lost 1 segments" in printed(record)


def test_what_looks_like_markup_is_text() -> None:
    flow = FlowRecord(client="[2001:db8::1]:80", server="[bold]:81")
    assert "[2001:db8::1]:80 > [bold]:81" in printed(_with(flow=flow))


def _with(**changes: Any) -> Record:
    return both_ways()[0].model_copy(update=changes)
