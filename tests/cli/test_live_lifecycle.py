"""``lab live lifecycle``: its tables, its JSON and its exit code, on rows made by hand."""

import io
from typing import Any

import pytest
from rich.console import Console

import lab.host.tables
import lab.study.lifecycle.tables
from lab.cli.lifecycle_tables import ENDED, NEVER, OPEN, WIDTH, shown, timeline
from lab.cli.live_lifecycle import as_json, lifecycle
from lab.host.tables import Row as HostRow
from lab.host.tables.rows import Question
from lab.live.lifecycle import LAB, PUBLISHED
from lab.study.lifecycle.closes import CODES, CloseRow
from lab.study.lifecycle.leaks import LeakRow, Repeated
from lab.study.lifecycle.limit import LimitRow
from lab.study.lifecycle.race import RaceRow
from lab.study.lifecycle.tables import Tables


def leak(variant: str, closed_in_s: float | None, limit_s: int | None, *, ok: bool) -> LeakRow:
    return LeakRow(
        variant, "developer-newer", "released, stream kept", closed_in_s, limit_s, ok, None, not ok, "none", ok
    )


def close(client: str, code: int, *, ok: bool) -> CloseRow:
    told = f"ClosedByServer: server {code}" if ok else f"UnexpectedClosure: {code}"
    return CloseRow(client, "open", code, "server", "no error", told, told, is_closed=True, ok=ok)


def host(case: str, variant: str, transport: str, *, right: bool, defective: bool = False) -> HostRow:
    return HostRow(Question.WITHOUT_SESSION, case, variant, transport, "no active session", 0.01, right, defective)


TABLES = Tables(
    leaks=[leak(PUBLISHED.name, None, 483, ok=False), leak(LAB.name, 0.05, None, ok=True)],
    repeated=[Repeated(LAB.name, "developer-newer", 100, 100, 0.12, ok=True)],
    limit=[LimitRow(PUBLISHED.name, "developer-newer", 3, 8, 4, "SetupRefused: no", 3, ok=False)],
    race=[RaceRow(PUBLISHED.name, "every order", 3, 2, 0, 0, ok=False)],
    closes=[
        *(close(LAB.name, code, ok=True) for code in CODES),
        *(close(PUBLISHED.name, code, ok=False) for code in CODES if code != 1001),
    ],
)
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
    assert "483 s" in out
    assert "100 of 100" in out
    assert f"all {len(CODES)}" in out
    assert "all but 1001" in out
    assert "2 requests" in out
    assert out.count("tcp, websocket") == 1


def test_the_json_has_what_the_contract_names() -> None:
    found = as_json(TABLES, HOSTS)

    assert {"leaks", "race", "closes", "host"} <= found.keys()
    assert {"variant", "profile", "path", "closed_in_s", "stream_finished", "ok"} <= found["leaks"][0].keys()
    assert len(found["host"]) == 4


@pytest.mark.parametrize("broken", ["nothing", "a repair", "a defect"])
def test_the_exit_code_says_whether_repairs_hold_and_defects_show(
    broken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = TABLES if broken != "a repair" else Tables(
        [leak(LAB.name, None, 483, ok=False)], [], TABLES.limit, TABLES.race, TABLES.closes
    )  # fmt: skip
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
