import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from lab.cli.report import report
from lab.core.errors import UsageError
from lab.report.folder import RunFolder
from lab.report.timeline import TimelineWriter
from tests.report.cases import ANCHOR, CASES, interrupted

app = typer.Typer()
app.command()(report)
BUILT = ("report.md", "figure.png", "figure.svg")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def make(path: Path, case: str = "both-ways") -> Path:
    record, observations = CASES[case]()
    path.mkdir()
    RunFolder(path).write_record(record)
    with TimelineWriter(path / "timeline.jsonl") as timeline:
        timeline.anchor(ANCHOR)
        for observation in observations:
            timeline.add(observation)
    return path


def test_the_report_and_the_figures_are_made_and_the_summary_printed(tmp_path: Path) -> None:
    folder = make(tmp_path / "run")
    result = run(str(folder))
    assert result.exit_code == 0
    assert result.stdout.startswith("CONFIRMED: each end met its fate as predicted")
    assert all((folder / name).stat().st_size > 500 for name in BUILT)
    assert b'id="client-tail-loss-probe"' in (folder / "figure.svg").read_bytes()


def test_rebuilding_changes_no_byte_and_neither_record_nor_timeline(tmp_path: Path) -> None:
    folder = make(tmp_path / "run")
    before = {name: (folder / name).read_bytes() for name in ("record.json", "timeline.jsonl")}
    run(str(folder))
    first = {name: (folder / name).read_bytes() for name in BUILT}
    run(str(folder))
    assert {name: (folder / name).read_bytes() for name in BUILT} == first
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_json_is_one_object_on_standard_output(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", "keepalive")
    result = run(str(folder), "--json")
    assert result.exit_code == 0, "a refuted run is no error of its report"
    answer = json.loads(result.stdout)
    assert answer["folder"] == str(folder)
    assert answer["written"] == list(BUILT)
    assert answer["record"] == json.loads((folder / "record.json").read_text())


def test_a_run_that_was_killed_before_its_cut_has_a_report_too(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_record(interrupted()[0])
    result = run(str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.startswith("INVALID: interrupted before the cut")
    assert all((tmp_path / name).exists() for name in BUILT)


def test_every_check_is_listed_when_asked(tmp_path: Path) -> None:
    folder = make(tmp_path / "run")
    assert "check ok       rules-matched: 17 forward, 17 return" in run(str(folder), "--verbose").stdout


def test_the_folder_of_many_sessions_is_answered_with_one_of_theirs(tmp_path: Path) -> None:
    session = tmp_path / "sessions" / "BR1-1"
    session.parent.mkdir()
    make(session)

    with pytest.raises(UsageError) as raised:
        report(tmp_path)
    assert str(session) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "seen"),
    [(None, "no record.json"), ("{", "is not JSON"), ('{"schema": 7}', "has schema 7"), ('{"schema": 1}', "is broken")],
)
def test_a_folder_without_a_readable_record_is_the_authors_mistake(text: str | None, seen: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "record.json").write_text(text)
    with pytest.raises(UsageError, match=seen):
        report(tmp_path)
    assert not any((tmp_path / name).exists() for name in BUILT)
