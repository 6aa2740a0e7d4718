"""The program of docs/lifecycle.md, as it stands there, at the URL that ``lab live serve`` prints."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab.live.lifecycle
from lab.live.protocol import paths

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/lifecycle.md").read_text(encoding="utf-8")
PATIENCE_S = 60.0
"""For a program that takes 4 s, on a busy machine."""


@pytest.fixture
def printed(tmp_path: Path) -> Iterator[str]:
    """The URL of a server that runs."""
    ports = ("--port", "0", "--tls-port", "0", "--status-port", "0")
    command = [sys.executable, "-m", "lab", "live", "serve", *ports]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        yield next(found[0] for line in running.stdout if (found := re.search(r"ws://\S+", line)))
        running.send_signal(signal.SIGINT)


def test_the_program_of_the_page_runs_as_it_stands(printed: str) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (url,) = re.findall(r'^URL = "(.*)"$', program, re.MULTILINE)
    assert re.sub(r":\d+", "", url) == re.sub(r":\d+", "", printed)

    ran = subprocess.run(
        [sys.executable, "-c", program.replace(url, printed)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )

    assert ran.stdout.splitlines() == ["book_slot {'slot': 'tomorrow 3pm'}", "resumed True"], ran.stderr
    assert ran.stderr == ""


def test_the_path_of_the_page_is_the_developer_endpoints() -> None:
    assert paths.developer() in PAGE


def test_every_name_that_is_offered_is_there() -> None:
    assert all(hasattr(lab.live.lifecycle, name) for name in lab.live.lifecycle.__all__)
