"""``lab serve``, as a user starts it."""

import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.fakes import until
from tests.control.unix import ask


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    with (folder / "log").open("w") as log:
        return subprocess.Popen([sys.executable, "-m", "lab", "serve", *options], stderr=log, text=True)


def said(folder: Path) -> str:
    return (folder / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_lines_to_try_work_and_a_signal_ends_all_of_it(folder: Path, number: signal.Signals) -> None:
    path = folder / "c.sock"
    serving = start(folder, "--socket", str(path))
    try:
        until(lambda: "Ctrl-C heals" in said(folder), 30)
        lines = [line.strip() for line in said(folder).splitlines() if line.startswith("  curl")]
        until(lambda: ask(path, "GET", "/flows")[1]["flows"])
        cut = subprocess.run(shlex.split(lines[1]), capture_output=True, text=True, check=True)
        listed = subprocess.run(shlex.split(lines[2]), capture_output=True, text=True, check=True)
        serving.send_signal(number)

        assert serving.wait(10) == 0
        assert '"state":"cut"' in cut.stdout
        assert '"faults":[{' in listed.stdout
        assert said(folder).rstrip().endswith("Everything is healed and gone.")
        assert not path.exists()
    finally:
        serving.kill()
        serving.wait()


def test_on_tcp_a_token_is_part_of_the_lines(folder: Path) -> None:
    serving = start(folder, "--listen", "127.0.0.1:0")
    try:
        until(lambda: "Ctrl-C heals" in said(folder), 30)
        line = next(line.strip() for line in said(folder).splitlines() if line.startswith("  curl"))
        answer = subprocess.run(
            ["env", "-u", "http_proxy", *shlex.split(line)], capture_output=True, text=True, check=True
        )

        assert re.search(r"Bearer \S{32}", line)
        assert answer.stdout.startswith('{"flows":')
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(10) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "8474"], "An address to listen on was expected"),
        (["--listen", "127.0.0.1:1", "--socket", "x"], "--listen and --socket were both given"),
        (["--profile", "nix"], "nix"),
    ],
)
def test_a_mistake_is_told_before_anything_is_served(folder: Path, options: list[str], words: str) -> None:
    serving = start(folder, *options)

    assert serving.wait(30) == 2
    assert words in said(folder)
