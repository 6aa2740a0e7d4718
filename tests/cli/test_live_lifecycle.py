"""``lab live lifecycle``: its JSON and its exit code, on rows made by hand."""

from dataclasses import replace
from typing import Any

import pytest

import lab.host.tables
import lab.study.lifecycle.tables
from lab.cli.live_lifecycle import as_json, lifecycle
from lab.live.lifecycle import LAB
from lab.study.lifecycle.tables import Tables
from tests.cli.scenes import EVERY_HOST, HOSTS, TABLES, host


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
