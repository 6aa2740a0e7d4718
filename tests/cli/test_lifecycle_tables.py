"""The tables of ``lab live lifecycle`` as they are printed, and the verdict below them."""

from dataclasses import replace

from lab.cli.lifecycle_tables import ENDED, NEVER, OPEN, WIDTH, timeline, verdict
from lab.live.lifecycle import LAB, PUBLISHED, VARIANTS
from lab.study.lifecycle import ways
from lab.study.lifecycle.closes import CODES
from tests.cli.scenes import EVERY_HOST, HOSTS, TABLES, text


def test_a_timeline_is_logarithmic_and_shows_what_never_ends() -> None:
    assert timeline(None) == OPEN * (WIDTH - 1) + NEVER
    assert timeline(0.0) == timeline(0.01) == ENDED
    assert len(timeline(0.1)) < len(timeline(1.0)) < len(timeline(500.0)) < len(timeline(None))
    assert timeline(1e6) == OPEN * (WIDTH - 1) + ENDED


def words_of(out: str) -> set[str]:
    return {word for word in out.split() if not word.startswith("──")}


def test_everything_fits_80_columns_and_no_word_is_broken_for_it() -> None:
    narrow, wide = text(TABLES, EVERY_HOST, 80), text(TABLES, EVERY_HOST, 500)

    assert all(len(line) <= 80 for line in narrow.splitlines())
    assert words_of(narrow) - words_of(wide) == set()
    assert "PARTICIPANT_DISCONNECTED" in narrow


def test_a_wide_console_has_every_row_on_one_line() -> None:
    assert len(text(TABLES, EVERY_HOST, 160).splitlines()) < len(text(TABLES, EVERY_HOST, 80).splitlines())
    assert "close frame, TCP kept: 1000, 1001, 1011" in text(TABLES, HOSTS, 160)


def test_rows_that_are_alike_are_one() -> None:
    out = text(TABLES, HOSTS, 200)

    assert "480 s, its limit" in out
    assert "100 of 100" in out
    assert f"all {len(CODES)}" in out
    assert "all but 1001" in out
    assert "2 requests before any session" in out
    assert [row.split()[:2] for row in out.splitlines() if "no active session" in row] == [["repaired", "both"]]
    assert "ignored" in out


def test_a_row_that_shows_a_defect_is_marked_for_who_sees_no_colours() -> None:
    def marked(path: str) -> list[str]:
        out = text(TABLES, HOSTS, 80).splitlines()
        at = out.index(path)
        return [line for line in out[at + 1 : at + 4] if line.startswith("! ")]

    assert [line.split()[1:3] for line in marked(ways.RELEASED)] == [PUBLISHED.name.split()]
    assert marked(ways.CLOSED) == []


def test_the_last_line_is_a_verdict_over_all_rows() -> None:
    count = sum(map(len, TABLES.as_json().values())) + len(HOSTS)

    assert verdict(TABLES, HOSTS, []) == f"Every repair holds and every defect shows, as predicted: {count} rows."
    assert verdict(TABLES, HOSTS, ["one"]).startswith(f"NOT AS PREDICTED: 1 contradiction in {count} rows")


def test_rows_that_are_missing_are_not_counted_as_rows_that_are_wrong() -> None:
    few = replace(TABLES, leaks=[], repeated=[], limit=[], race=[], closes=[], rules=[TABLES.rules[0]])
    count = len(few.failures)

    assert count > 1
    assert verdict(few, [], few.failures).startswith(f"NOT AS PREDICTED: {count} contradictions in 1 row;")


def test_a_host_s_variant_is_not_called_as_a_session_that_is_let_go_of() -> None:
    (row,) = [line for line in text(TABLES, EVERY_HOST, 80).splitlines() if line.startswith("! livekit-agents 1.8.9")]

    assert "not told" in row


def test_the_published_and_the_repaired_race_are_one_line_of_runs_that_were_right() -> None:
    out = text(TABLES, HOSTS, 80).splitlines()
    at = out.index("every order")

    assert [" ".join(line.split()) for line in out[at + 1 : at + 3]] == [
        "! as published, with the repair 3 of 4 0 of 4 0 of 4",
        "the lab's 4 of 4 4 of 4 4 of 4",
    ]


def line(path: str, variant: str) -> str:
    """A line of the leak table behind its timeline."""
    out = text(TABLES, HOSTS, 200).splitlines()
    at = out.index(path)
    (found,) = [row for row in out[at + 1 : at + 4] if variant in row]
    return " ".join(found.rpartition(ENDED + " ")[2].split())


def test_each_witness_has_its_time_and_what_stays_is_open() -> None:
    assert line(ways.RELEASED, LAB.name) == "0.02 s 0.04 s 0.03 s"
    assert line(ways.CLOSED, LAB.name) == "0.02 s 0.04 s open"
    assert line(ways.EXIT, LAB.name) == "0.02 s 0.04 s -"
    assert line(ways.RELEASED, PUBLISHED.name) == "480 s, its limit open open"


def test_a_reader_that_was_told_an_error_is_not_one_that_waits() -> None:
    leaks = [replace(row, stream_failed=row.path == ways.CLOSED) for row in TABLES.leaks]
    out = text(replace(TABLES, leaks=leaks), HOSTS, 200).splitlines()
    at = out.index(ways.CLOSED)

    assert [row.split()[-1] for row in out[at + 1 : at + 4]] == ["error"] * len(VARIANTS)


def test_what_sessions_said_of_being_closed_is_printed_step_by_step() -> None:
    (said,) = [row for row in text(TABLES, HOSTS, 200).splitlines() if ways.RESUMED in row and "then yes" in row]

    assert said.rstrip().endswith("no, then yes, then no")
    assert "all three" in said
    assert len(VARIANTS) == 3
