"""The repro in another language, against a real controller."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines import do_without

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "repro" / "node" / "cut.mjs"
TOKEN = "of-a-test"


@pytest.fixture(scope="session")
def node() -> str:
    return shutil.which("node") or do_without("There is no node; apt-get install nodejs")


@contextmanager
def served() -> Iterator[str]:
    """``lab serve`` on loopback; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "serve", "--listen", "127.0.0.1:0"],
        cwd=ROOT,
        env={**os.environ, "LAB_TOKEN": TOKEN, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = ""
        # The last line of what it prints at first.
        while "Ctrl-C" not in said and (line := process.stdout.readline()):
            said += line
        found = re.search(r"listens on (\S+);", said)
        assert found, said
        yield f"http://{found[1]}"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def run(node: str, *words: str, token: str = TOKEN) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [node, str(SCRIPT), *words],
        env={**os.environ, "LAB_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_script_cuts_a_flow_and_reads_that_the_hole_was_a_hole(node: str) -> None:
    with served() as url:
        done = run(node, url, "5000")
        refused = run(node, url, token="another")

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^cut      \d\.\d+ s ago, \d+ packets lost$", done.stdout, re.MULTILINE)
    assert "ok       rule-equals-capture-forward" in done.stdout
    assert done.stdout.splitlines()[-1] == "verdict  confirmed"
    assert refused.returncode == 2
    assert "token" in refused.stderr


@pytest.mark.parametrize("words", [("http://127.0.0.1:9",), ()], ids=["as word", "as LAB_URL"])
def test_the_script_says_that_nobody_answers(
    node: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_URL", "http://127.0.0.1:9")
    done = run(node, *words)

    assert "usage" not in done.stderr
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "at " not in done.stderr
