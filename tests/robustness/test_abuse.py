"""Programs and people who do what nobody expects: a clear sentence or an untouched verdict, never a wrong one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.core.errors import EnvironmentNotReady, InvalidRun, UsageError
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.run.spec import Program
from tests.robustness.runs import outcome, own_processes, spec

TALK = """
import socket, time
s = socket.create_connection(("server", 5000))
while True:
    s.send(b"x\\n"), s.recv(99), time.sleep(0.2)
"""

FLOOD = """
import sys, threading
def flood():
    for _ in range(100_000):
        sys.stdout.buffer.write(b"y" * 1000 + b"\\n")
threading.Thread(target=flood).start()
"""

DAEMONS = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
"""

MANY = """
import socket
others = []
def more():
    others.extend(socket.create_connection(("server", 5000)) for _ in range(199))
"""


def program(code: str) -> Program:
    return Program((sys.executable, "-c", code))


@pytest.mark.slow
@pytest.mark.parametrize("misdeed", [FLOOD, DAEMONS], ids=["prints 100 MB", "leaves daemons"])
def test_what_a_program_does_beside_its_flow_changes_nothing(tmp_path: Path, misdeed: str) -> None:
    wanted = spec(client=program(misdeed + TALK), actions=(), writes_on=True)

    assert outcome(wanted, tmp_path) == (Outcome.CONFIRMED, "")


@pytest.mark.slow
def test_one_of_two_hundred_connections_is_cut(tmp_path: Path) -> None:
    code = MANY + TALK.replace("while True:", "s.send(b'x'), s.recv(99), more()\nwhile True:")
    wanted = spec(client=program(code), actions=(), writes_on=True, flow="first")

    assert outcome(wanted, tmp_path) == (Outcome.CONFIRMED, "")


def in_router(command: str) -> None:
    (pid,) = own_processes("lab-router")
    enter = ["nsenter", "-t", str(pid), "-U", "-n", "--preserve-credentials"]
    # The lock of the command belongs to the machine's root.
    subprocess.run([*enter, "sh", "-c", command], check=True, env={**os.environ, "XTABLES_LOCKFILE": os.devnull})


@pytest.mark.parametrize(
    ("command", "seen", "words"),
    [
        ("iptables-legacy -t mangle -F", InvalidRun, "Somebody else changed the rules"),
        pytest.param(
            "iptables-legacy -t mangle -F FORWARD", Outcome.INVALID, "nothing-crossed", marks=pytest.mark.slow
        ),
        pytest.param(
            "iptables-legacy -t mangle -I FORWARD -j DROP",
            Outcome.INVALID,
            "bystander-unharmed",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_rules_that_somebody_changed_are_never_a_verdict(
    tmp_path: Path, command: str, seen: object, words: str
) -> None:
    came, reason = outcome(spec(watch_s=2.5), tmp_path, at_cut=lambda _: in_router(command))

    assert came == seen
    assert words in reason


@pytest.mark.slow
def test_a_folder_that_was_deleted_during_the_run_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def delete(_: Run) -> None:
        shutil.rmtree(out)

    came, reason = outcome(spec(), out, at_cut=delete)

    assert came is EnvironmentNotReady
    assert str(out) in reason


BULK = """
import socket, time
s = socket.create_connection(("server", 5000))
while True:
    s.sendall(b"x" * 4000), s.recv(1 << 20), time.sleep(0.002)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
@pytest.mark.parametrize(
    ("kilobytes", "client"),
    [
        pytest.param(1024, BULK, marks=pytest.mark.slow),
        pytest.param(200, TALK, marks=pytest.mark.slow),
        (32, TALK),
    ],
    ids=["filled by the capture", "filled by the report", "full from the start"],
)
def test_a_full_disk_is_an_environment_that_is_not_ready(tmp_path: Path, kilobytes: int, client: str) -> None:
    disk = f'mount -t tmpfs -o size={kilobytes}k none {tmp_path} && exec "$@"'
    lab = [sys.executable, "-m", "lab", "run", "--port", "5000", "--cut-after", "1s", "--for", "1s"]
    programs = [
        "--server",
        f"{sys.executable} -m lab.programs.server 5000",
        "--client",
        f"{sys.executable} -c '{client}'",
    ]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", disk, "sh", *lab, *programs, "--profile", "fast", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == EnvironmentNotReady.exit_code, done.stderr
    assert "No space left" in " ".join(done.stderr.split())


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/sys/nowhere"])
def test_a_folder_that_cannot_be_made_is_said_before_anything_starts(folder: str) -> None:
    with pytest.raises((EnvironmentNotReady, UsageError), match=folder):
        outcome(spec(), Path(folder))
