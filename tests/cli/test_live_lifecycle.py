"""``lab live lifecycle``: its tables, its JSON and its exit code, on rows made by hand."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import lab.host.tables
import lab.study.lifecycle.tables
from lab.cli.lifecycle_tables import ENDED, NEVER, OPEN, WIDTH, shown, timeline
from lab.cli.live_lifecycle import as_json, lifecycle
from lab.host.tables import Row as HostRow
from lab.host.tables.rows import Question
from lab.live.lifecycle import LAB, PUBLISHED, VARIANTS
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


def test_everything_fits_80_columns_and_rows_that_are_alike_are_one() -> None:
    assert all(len(line) <= 80 for line in text(TABLES, HOSTS, 80).splitlines())

    out = text(TABLES, HOSTS, 200)
    assert "480 s" in out
    assert "100 of 100" in out
    assert f"all {len(CODES)}" in out
    assert "all but 1001" in out
    assert "2 requests" in out
    assert out.count("tcp, websocket") == 1
    assert "ignored" in out


def line(path: str, variant: str) -> list[str]:
    """The words of a line of the leak table behind its timeline."""
    (found,) = [row for row in text(TABLES, HOSTS, 200).splitlines() if path in row and variant in row and ENDED in row]
    return found.rpartition(ENDED)[2].split()


def test_each_witness_has_its_time_and_what_stays_is_open() -> None:
    assert line(ways.RELEASED, LAB.name) == ["0.02", "s", "0.04", "s", "0.03", "s"]
    assert line(ways.CLOSED + " ", LAB.name) == ["0.02", "s", "0.04", "s", "open"]
    assert line(ways.RELEASED, PUBLISHED.name) == ["480", "s", "open", "open"]


def test_what_sessions_said_of_being_closed_is_printed_step_by_step() -> None:
    (said,) = [row for row in text(TABLES, HOSTS, 200).splitlines() if ways.RESUMED in row and "then yes" in row]

    assert said.rstrip().endswith("no, then yes, then no")
    assert all(variant in said for variant in VARIANTS)


def test_the_json_has_what_the_contract_names() -> None:
    found = as_json(TABLES, HOSTS)

    assert {"leaks", "race", "closes", "host"} <= found.keys()
    assert {"variant", "profile", "path", "closed_in_s", "stream_finished", "ok"} <= found["leaks"][0].keys()
    assert len(found["host"]) == 4


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
        lifecycle(json=True, repeats=1, races=1)
    else:
        with pytest.raises(SystemExit) as ended:
            lifecycle(json=True, repeats=1, races=1)
        assert ended.value.code == 1
    assert '"leaks"' in capsys.readouterr().out
