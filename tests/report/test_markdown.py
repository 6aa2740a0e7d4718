from lab.report.markdown import as_markdown
from lab.report.record import Bystander, Check, Outcome, Record
from lab.report.summary import summarise
from tests.report.cases import CASES, both_ways


def page(record: Record) -> str:
    return as_markdown(summarise(record))


def test_the_page_opens_with_the_verdict_and_shows_the_figure() -> None:
    lines = page(both_ways()[0]).splitlines()
    assert lines[0] == "# CONFIRMED"
    assert lines[2] == "each end met its fate as predicted"
    assert any(line.endswith("(figure.svg)") for line in lines)


def test_the_table_has_five_cells_in_every_row() -> None:
    table = [line for line in page(both_ways()[0]).splitlines() if line.startswith("|")]
    assert len(table) == 8
    assert {line.count("|") for line in table} == {6}
    assert "| gave up | 14.64 to 15.27 s | 14.95 s | 14.89 to 15.52 s | 15.21 s |" in table


def test_every_check_is_on_the_page_and_failures_stand_out() -> None:
    checks = (Check(name="bystander", ok=True), Check(name="clock", ok=False, detail="moved *3* ms"))
    text = page(Record(outcome=Outcome.INVALID, backend="netns", reason="the clock moved", checks=checks))
    assert "- ok bystander\n" in text
    assert "- **FAILED** clock: moved \\*3\\* ms" in text


def test_doubts_have_a_chapter() -> None:
    record, _ = both_ways()
    doubted = record.observation.model_copy(update={"bystander": Bystander(alive=False)})
    assert "## Doubts" in page(record.model_copy(update={"observation": doubted}))
    assert "## Doubts" not in page(record)


def test_foreign_words_cannot_become_markup() -> None:
    text = page(Record(outcome=Outcome.INVALID, backend="netns", reason="<script>\n# [x](y) | `z`"))
    assert "\\<script\\> \\# \\[x\\](y) \\| \\`z\\`" in text


def test_artefacts_are_links_within_the_folder() -> None:
    assert "- [left.pcapng](<left.pcapng>)" in page(both_ways()[0])


def test_an_interrupted_run_has_a_page() -> None:
    assert page(CASES["interrupted"]()[0]).startswith("# INVALID\n\ninterrupted before the cut\n")
