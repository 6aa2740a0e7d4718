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
    assert json.loads(clean(monkeypatch, [], "--json").stdout) == {"removed": []}
    assert json.loads(clean(monkeypatch, [LEFT], "--json").stdout) == {
        "removed": [{"kind": "folder", "name": LEFT.name, "owner": "7:8:9"}]
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
