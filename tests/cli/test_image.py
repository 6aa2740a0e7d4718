"""lab image build: what was built, for people and for scripts."""

import json
from typing import Self

import pytest
from typer.testing import CliRunner, Result

from lab.cli.app import app
from lab.testbed.docker import engine
from lab.testbed.docker.images import build
from lab.testbed.docker.images.build import Built


class Answering:
    """An engine that is there, and no more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def run(monkeypatch: pytest.MonkeyPatch, *options: str, reaper: str | None = None) -> tuple[Result, list[bool]]:
    used: list[bool] = []

    def build_all(_: object, __: object, *, cached: bool) -> list[Built]:
        used.append(cached)
        return [Built("blackhole-lab/lab:1", "sha256:0123456789abcdef", 173_000_000)]

    monkeypatch.setattr(engine, "connect", lambda _: Answering())
    monkeypatch.setattr(build, "build_base", lambda *_: "made")
    monkeypatch.setattr(build, "build_all", build_all)
    monkeypatch.setattr(build, "find_reaper", lambda _: reaper)
    return CliRunner().invoke(app, ["image", *options]), used


def test_each_image_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    result, cached = run(monkeypatch, "build")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "base    debian:bookworm-slim: made",
        "built   blackhole-lab/lab:1  0123456789ab  173 MB",
        "reaper  Testcontainers' own could not be had; the lab's does without it",
    ]
    assert cached == [True]


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, "build", "--json", reaper="testcontainers/ryuk:1")

    assert json.loads(result.stdout) == {
        "base": "made",
        "images": [{"name": "blackhole-lab/lab:1", "id": "sha256:0123456789abcdef", "size_bytes": 173_000_000}],
        "reaper": "testcontainers/ryuk:1",
    }


def test_the_base_alone_builds_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    result, cached = run(monkeypatch, "build", "--base-only")

    assert result.stdout == "base    debian:bookworm-slim: made\n"
    assert cached == []


def test_no_cache_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "build", "--no-cache")[1] == [False]


def test_anything_but_build_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    result, cached = run(monkeypatch, "burn")

    assert result.exit_code == 2
    assert cached == []
