"""``lab live lifecycle``: its tables, its JSON and its exit code, on rows made by hand."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import lab.host.tables
import lab.study.lifecycle.tables
from lab.cli.lifecycle_tables import AXIS, ENDED, NEVER, OPEN, WIDTH, shown, timeline, verdict
from lab.cli.live_lifecycle import as_json, lifecycle
from lab.host.tables import Row as HostRow
from lab.host.tables.rows import Question
from lab.host.tables.stage import REQUEST_S
from lab.live.lifecycle import LAB, PUBLISHED, VARIANTS
from lab.live.lifecycle.endpoints import ENDPOINTS
from lab.study.lifecycle import ways
from lab.study.lifecycle.closes import CODES
from lab.study.lifecycle.tables import Tables
from tests.study.lifecycle.scenes import predicted


def host(case: str, variant: str, transport: str, *, right: bool, defective: bool = False) -> HostRow:
    return HostRow(Question.WITHOUT_SESSION, case, variant, transport, "no active session", 0.01, right, defective)


TABLES = predicted()
HOSTS = [
    host(f"{request} before any session", "repaired", transport, right=True)
    for request in ("Ping", "RunInput")
    for transport in ("tcp", "websocket")
]
TOLD = "ended by participant_disconnected"
EVERY_HOST = [
    *(
        HostRow(Question.CLOSING, TOLD, *("repaired", transport, "PARTICIPANT_DISCONNECTED"), 0.01, True, False)
        for transport in ("tcp", "websocket")
    ),
    HostRow(Question.CLOSING, TOLD, *("released", "websocket", "not told"), 0.01, False, True, True),
    *HOSTS,
    HostRow(Question.FINALIZING, "the user's code fails", *("repaired", "tcp", "failed"), None, True, False),
]


def text(tables: Tables, hosts: list[HostRow], width: int) -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=False)
    for part in shown(tables, hosts):
        out.print(part)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


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


def test_each_table_stands_below_what_it_asks_and_each_of_its_columns_is_explained() -> None:
    out = text(TABLES, EVERY_HOST, 2000)
    blocks = [block.splitlines() for block in out.split("\n\n")]
    tables = [block for block in blocks if any(line.startswith("──") for line in block)]
    said = {"variant", "path", "case", "is_closed", "how, with which codes", AXIS, "server"}
    missing = []
    for title, *legend in (
        block[: next(i for i, line in enumerate(block) if line.startswith("──"))] for block in tables
    ):
        above, headings = " ".join([*legend[:-1], *out.split("\n\n")]), legend[-1].strip()
        assert len(legend) > 1, title
        missing += [
            (title, heading)
            for heading in re.split(r"\s{2,}", headings.replace(AXIS, ""))
            if heading not in said and not re.search(rf"\b{heading}[:,]", above)
        ]

    assert len(tables) == 11
    assert missing == []


def test_what_decides_how_to_read_the_tables_is_said() -> None:
    out = " ".join(text(TABLES, EVERY_HOST, 80).split())

    assert "logarithmic axis" in out
    assert "100 times faster, as a time lapse" in out
    assert "repair does not claim to mend this race" in out
    assert "livekit-agents 1.8.9" in out


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


def test_the_numbers_of_the_legends_are_those_of_the_tables() -> None:
    out = " ".join(text(TABLES, EVERY_HOST, 80).split())
    paths, servers = ({getattr(row, key) for row in TABLES.leaks} for key in ("path", "profile"))

    assert f"by {len(paths)} paths at {len(servers)} servers" in out
    assert f"A request waits {REQUEST_S:g} s here" in out
    assert f"limit of silence, {ENDPOINTS['developer-older'].server.silence_close_s:g} s" in out


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


def test_what_sessions_said_of_being_closed_is_printed_step_by_step() -> None:
    (said,) = [row for row in text(TABLES, HOSTS, 200).splitlines() if ways.RESUMED in row and "then yes" in row]

    assert said.rstrip().endswith("no, then yes, then no")
    assert "all three" in said
    assert len(VARIANTS) == 3


def test_the_json_has_what_the_contract_names() -> None:
    found = as_json(TABLES, HOSTS)

    assert {"leaks", "race", "closes", "host"} <= found.keys()
    assert {"variant", "profile", "path", "closed_in_s", "stream_finished", "ok"} <= found["leaks"][0].keys()
    assert len(found["host"]) == 4
    assert (found["outcome"], found["contradictions"]) == ("confirmed", [])


def test_in_every_table_ok_is_right_in_itself_and_as_predicted_is_what_the_outcome_rests_on() -> None:
    found = as_json(TABLES, EVERY_HOST)
    tables = {key: rows for key, rows in found.items() if key not in {"outcome", "contradictions"}}

    assert all(row["as_predicted"] for rows in tables.values() for row in rows)
    assert {key for key, rows in tables.items() if not all(row["ok"] for row in rows)} == {
        *("leaks", "limit", "race", "closes", "host")
    }


def test_a_row_that_is_not_as_predicted_refutes() -> None:
    leaks = [replace(TABLES.leaks[-1], ok=False), *TABLES.leaks[:-1]]
    found = as_json(replace(TABLES, leaks=leaks), [host("x", "requests dropped", "tcp", right=True, defective=True)])

    assert found["outcome"] == "refuted"
    assert [said.partition(":")[0] for said in found["contradictions"]] == ["leaks", "host"]
    assert [row["as_predicted"] for row in (found["leaks"][0], found["host"][0])] == [False, False]


@pytest.mark.parametrize("broken", ["nothing", "a repair", "a defect"])
def test_the_exit_code_says_whether_repairs_hold_and_defects_show(
    broken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leaks = [replace(row, ok=False) if row.variant == LAB.name else row for row in TABLES.leaks]
    tables = TABLES if broken != "a repair" else replace(TABLES, leaks=leaks)
    hosts = HOSTS if broken != "a defect" else [host("Ping before any session", "x", "tcp", right=True, defective=True)]

    async def measured(**_: Any) -> Tables:
        return tables

    monkeypatch.setattr(lab.study.lifecycle.tables, "measure", measured)
    monkeypatch.setattr(lab.host.tables, "host_rows", lambda: hosts)
    if broken == "nothing":
        lifecycle(json=True, repeats=1, races=1000)
    else:
        with pytest.raises(SystemExit) as ended:
            lifecycle(json=True, repeats=1, races=1000)
        assert ended.value.code == 1
    assert '"leaks"' in capsys.readouterr().out
