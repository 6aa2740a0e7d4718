"""lab clean: what was removed, for people and for scripts."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lab.cli.app import app
from lab.testbed import sweep
from lab.testbed.sweep import Leftover

LEFT = Leftover("folder", "/run/user/1000/blackhole-lab/7:8:9-1", "7:8:9")


def clean(monkeypatch: pytest.MonkeyPatch, removed: list[Leftover], *options: str) -> Result:
    monkeypatch.setattr(sweep, "sweep", lambda _tell: removed)
    monkeypatch.setattr(sweep, "find_on_engines", list)
    return CliRunner().invoke(app, ["clean", *options])


def test_what_was_removed_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = clean(monkeypatch, [LEFT])

    assert result.exit_code == 0
    assert result.stdout == "removed folder /run/user/1000/blackhole-lab/7:8:9-1\n"


def test_nothing_to_remove_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    result = clean(monkeypatch, [])

    assert result.exit_code == 0
    assert result.stdout == "Nothing was left behind.\n"


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(clean(monkeypatch, [], "--json").stdout) == {"removed": [], "left": []}
    assert json.loads(clean(monkeypatch, [LEFT], "--json").stdout) == {
        "removed": [{"kind": "folder", "name": LEFT.name, "owner": "7:8:9"}],
        "left": [],
    }


def test_an_engine_that_was_named_and_does_not_answer_is_told_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = CliRunner().invoke(app, ["clean"])

    assert result.exit_code == 0
    assert result.stdout == "Nothing was left behind.\n"
    assert "Containers were not looked for. There is no Docker engine" in " ".join(result.stderr.split())


STUCK = Leftover("container", "clever_name", "7:8:9")


def clean_with(monkeypatch: pytest.MonkeyPatch, looks: list[list[Leftover]], *options: str) -> Result:
    """What each look at the engine finds, the last one for ever."""
    monkeypatch.setattr(sweep, "sweep", lambda _tell: [])
    monkeypatch.setattr(sweep, "find_on_engines", lambda: looks.pop(0) if len(looks) > 1 else looks[0])
    monkeypatch.setattr(sweep, "PATIENCE_S", 1.0)
    return CliRunner().invoke(app, ["clean", *options])


def test_what_could_not_be_removed_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = clean_with(monkeypatch, [[STUCK]], "--json")

    assert result.exit_code == 5
    assert json.loads(result.stdout)["left"] == [{"kind": "container", "name": "clever_name", "owner": "7:8:9"}]
    assert "container clever_name" in result.stderr


def test_what_a_reaper_removes_meanwhile_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result = clean_with(monkeypatch, [[STUCK], [STUCK], []])

    assert (result.exit_code, result.stdout) == (0, "Nothing was left behind.\n")


def test_what_came_later_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clean_with(monkeypatch, [[], [STUCK]]).exit_code == 0
