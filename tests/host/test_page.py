"""docs/host.md: its programs run as they stand, its command prints what is shown, and all options are named."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import lab.host
from lab.host.programs.main import main
from tests.testbed.isolated import until

ROOT = Path(lab.host.__file__).parent.parent.parent
PAGE = (ROOT / "docs/host.md").read_text(encoding="utf-8")
PORT = "8770"
DEADLINE_S = 60.0
RUN_S = 120.0
INVALID = 3
TRIES = 3
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def indented(first: str) -> list[str]:
    """The lines of the indented block that begins so."""
    lines = PAGE.splitlines()
    begin = lines.index(f"    {first}")
    end = next(number for number in range(begin, len(lines)) if not lines[number].startswith("    "))
    return [line[4:] for line in lines[begin:end]]


def test_the_host_and_the_remote_shown_print_what_is_shown(tmp_path: Path) -> None:
    """On a port that is free, which is all that is changed."""
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    port = free_port()
    for name, text in zip(("host.py", "remote.py"), programs, strict=True):
        assert text.count(PORT) == 1
        (tmp_path / name).write_text(text.replace(PORT, port), encoding="utf-8")
    host = subprocess.Popen([sys.executable, "host.py"], cwd=tmp_path, env=ENVIRONMENT)
    with host:
        try:
            _until_listening(port, host)
            done = subprocess.run(
                [sys.executable, "remote.py"],
                cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True,
            )  # fmt: skip
            assert host.wait(DEADLINE_S) == 0
        finally:
            host.kill()
    assert done.stdout.splitlines() == indented("$ python host.py & sleep 1")[2:]


def _until_listening(port: str, host: "subprocess.Popen[bytes]") -> None:
    """Without connecting, since the host takes the first one."""
    listens = re.compile(rf"^\s*\d+: 0100007F:{int(port):04X} \S+ 0A ", re.MULTILINE)
    until(lambda: host.poll() is not None or listens.search(Path("/proc/net/tcp").read_text()), DEADLINE_S)
    assert host.poll() is None


def test_the_run_shown_prints_what_is_shown(tmp_path: Path) -> None:
    """Line for line, whatever the figures."""
    shown = indented("$ lab run --profile fast --port 8770 --for 8 --out dark \\")
    command, look, *printed = " ".join(shown).replace("\\ ", "").split("$ ")[1:]
    look, *printed = re.split(r" (?=\{)", look)
    words = [word.replace("python -m", f"{sys.executable} -m") for word in shlex.split(command)][1:]
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, "-m", "lab", *words],
            cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip
        if done.returncode != INVALID:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    found = subprocess.run(["bash", "-c", look], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert _shapes(found.stdout.splitlines()) == _shapes(printed)


def _shapes(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+\.\d+", "N", line.strip()) for line in lines]


@pytest.mark.parametrize("role", ["job", "simulator", "relay"])
def test_every_option_is_named(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([role, "--help"])
    options = set(re.findall(r"^\s+(--[a-z][a-z-]*)", capsys.readouterr().out, re.MULTILINE))
    assert len(options) > 2
    assert {option for option in options if not re.search(rf"`[^`]*{option}\b|^    .*{option}\b", PAGE, re.M)} == set()


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in lab.host.__all__ if getattr(lab.host, name) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        getattr(lab.host, "Nobody")  # noqa: B009 -- a type checker knows that it is not there
