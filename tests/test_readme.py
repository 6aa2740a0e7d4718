"""The README shows commands and their real output; both are held against the commands."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
INVALID = 3
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def block_with(words: str) -> str:
    found: str
    (found,) = [text for _, text in BLOCKS if words in text]
    return found


def shape(text: str) -> list[str]:
    """The words of each line in order, without figures, which differ from run to run."""
    lines = []
    for line in text.splitlines():
        plain = re.sub(r"[\w./\[\]:-]*\d[\w./\[\]:-]*", "N", line)
        lines.append(" ".join(plain.split()))
    return sorted(line for line in lines if line)


def lab(*words: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=True,
    )
    return done.stdout


def test_the_prediction_shown_is_what_the_command_prints() -> None:
    shown = block_with("$ lab predict\n").removeprefix("$ lab predict\n")
    printed = lab("predict")
    assert [line.rstrip() for line in printed.strip().splitlines()] == shown.strip().splitlines()


def undisturbed_demo(folder: Path, tries: int = 3) -> str:
    """What the demo prints; one that the machine disturbed says INVALID, which is no result, and is done again."""
    for _ in range(tries - 1):
        try:
            return lab("demo", cwd=folder)
        except subprocess.CalledProcessError as error:
            if error.returncode != INVALID:
                raise
    return lab("demo", cwd=folder)


def test_the_demo_shown_is_what_the_demo_prints(tmp_path: Path) -> None:
    """Same lines, whatever the figures; what happens at nearly the same time may change places."""
    assert shape(undisturbed_demo(tmp_path)) == shape(block_with("CUT. Packets"))


def test_the_test_shown_at_the_top_runs(tmp_path: Path) -> None:
    """With the two programs that it names."""
    (tmp_path / "server.py").write_text(
        "import socket\n"
        "listener = socket.create_server(('', 5000))\n"
        "connection, _ = listener.accept()\n"
        "while data := connection.recv(4096):\n"
        "    connection.sendall(data)\n"
    )
    (tmp_path / "client.py").write_text(
        "import socket, sys, time\n"
        "connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)\n"
        "try:\n"
        "    while True:\n"
        "        connection.sendall(b'tick')\n"
        "        connection.recv(4096)\n"
        "        time.sleep(0.3)\n"
        "except TimeoutError:\n"
        "    print('connection lost', flush=True)\n"
    )
    (tmp_path / "test_shown.py").write_text(block_with("def test_the_client_notices"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shown.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_shown_is_taken_from_the_last_run_of_the_experiments() -> None:
    source = (ROOT / "scripts/readme_table.py").read_text(encoding="utf-8")
    script: dict[str, Any] = {"__name__": "readme_table", "__file__": str(ROOT / "scripts/readme_table.py")}
    exec(source, script)
    table = script["selection"]((ROOT / "docs/experiments.md").read_text(encoding="utf-8"))
    assert script["with_table"](README, table) == README


def test_no_block_is_wider_than_a_terminal() -> None:
    wide = [line for kind, text in BLOCKS if kind == "text" for line in text.splitlines() if len(line) > 100]
    assert not wide


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_verb_of_the_command_is_shown() -> None:
    from lab.cli.app import VERBS

    assert [verb for verb in VERBS if f"`lab {verb}" not in README] == []
