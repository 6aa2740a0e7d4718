"""The end of ``lab run`` and ``lab demo``: the exit code, one object on standard output, no pass on Ctrl-C."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.cli.execute import execute, retract
from lab.core.errors import InvalidRun
from lab.report import build
from lab.report.folder import RunFolder
from lab.report.record import Outcome, Record
from lab.run import runner
from lab.run.spec import Program, RunSpec
from tests.report.cases import CASES

SPEC = RunSpec(Program(("srv",)), Program(("cli",)), 5000)
Ends = Callable[[RunFolder], Record]


def judged(outcome: Outcome) -> Ends:
    """A run that ends like this."""

    def end(folder: RunFolder) -> Record:
        record = CASES["both-ways"]()[0].model_copy(update={"outcome": outcome, "reason": "because"})
        folder.write_record(record)
        return record

    return end


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Ends], Path]:
    """Makes the next run end like this, without running; gives its folder."""

    def arrange(end: Ends) -> Path:
        class FakeRun:
            def __init__(self, spec: RunSpec, _open: object, *, out: Path | None, backend: str) -> None:
                assert backend in ("netns", "docker")
                self.folder = RunFolder.create(spec.name, started=datetime.now(UTC), out=out)
                self.tell: object = None

            def execute(self) -> Record:
                return end(self.folder)

        monkeypatch.setattr(runner, "Run", FakeRun)
        monkeypatch.setattr(build, "rebuild", lambda _folder, _record: ())
        return tmp_path / "out"

    return arrange


def call(out: Path, *, as_json: bool = False) -> int | str | None:
    try:
        execute(SPEC, backend="auto", out=out, as_json=as_json)
    except SystemExit as error:
        return error.code
    return 0


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome.CONFIRMED, 0), (Outcome.REFUTED, 1), (Outcome.INVALID, 3), (Outcome.UNSUPPORTED, 4)],
)
def test_the_exit_code_is_the_outcomes(ending: Callable[[Ends], Path], outcome: Outcome, code: int) -> None:
    assert call(ending(judged(outcome))) == code


def test_json_is_the_record_with_all_artefacts_and_nothing_else(
    ending: Callable[[Ends], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = ending(judged(Outcome.CONFIRMED))
    call(out, as_json=True)
    printed = json.loads(capsys.readouterr().out)

    assert printed == json.loads((out / "record.json").read_text())
    assert printed["artefacts"] == ["record.json"]


def test_people_get_the_verdict_and_where_everything_is(
    ending: Callable[[Ends], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call(ending(judged(Outcome.CONFIRMED)))
    printed = capsys.readouterr().out

    assert printed.startswith("CONFIRMED")
    assert "Everything is in" in printed


@pytest.mark.parametrize("as_json", [False, True])
def test_an_error_passes_on_and_its_record_is_the_json(
    as_json: bool, ending: Callable[[Ends], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(folder: RunFolder) -> Record:
        judged(Outcome.INVALID)(folder)
        raise InvalidRun("the counters never rested")

    with pytest.raises(InvalidRun):
        call(ending(fail), as_json=as_json)
    shown = capsys.readouterr().out
    assert (json.loads(shown)["outcome"] == "invalid") if as_json else shown == ""


def test_ctrl_c_while_the_report_is_made_takes_the_verdict_back(
    ending: Callable[[Ends], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ending(judged(Outcome.CONFIRMED))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "rebuild", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(out)
    record = RunFolder(out).read_record()
    assert (record.outcome, record.interrupted) == (Outcome.INVALID, True)
    assert record.reason == "the run was interrupted while its report was made; until then it was confirmed"


def test_a_record_that_is_invalid_already_keeps_its_reason(tmp_path: Path) -> None:
    folder = RunFolder.create("run", started=datetime.now(UTC), out=tmp_path / "out")
    judged(Outcome.INVALID)(folder)
    retract(folder)

    assert folder.read_record().reason == "because"
