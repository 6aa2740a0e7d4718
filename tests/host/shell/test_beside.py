"""The program beside a relay: it has the relay's input, is waited for, and does not outlive it."""

import os
import select
import signal
import socket
import sys

import pytest

from lab.host.programs.main import main
from tests.host.shell.relays import DEADLINE_S, TIMEOUT_S, running, until_said

BESIDE = """
import json, os, signal, sys
signal.signal(signal.SIGTERM, signal.{handler})
print(json.dumps({{"event": "beside", "pid": os.getpid()}}), flush=True)
for line in sys.stdin:
    print(json.dumps({{"event": "heard", "line": line.strip()}}), flush=True)
"""


@pytest.mark.parametrize(
    ("handler", "number", "end_s"),
    [
        ("SIG_DFL", signal.SIGTERM, DEADLINE_S),
        ("SIG_IGN", signal.SIGTERM, 0.0),
        ("SIG_IGN", signal.SIGKILL, DEADLINE_S),
    ],
    ids=["asked to", "killed", "by the kernel"],
)
def test_the_program_beside_it_ends_with_it(handler: str, number: signal.Signals, end_s: float) -> None:
    with running(sys.executable, "-c", BESIDE.format(handler=handler), end_s=end_s) as process:
        pidfd = os.pidfd_open(until_said(process, "beside")["pid"])
        try:
            process.send_signal(number)
            assert select.select([pidfd], [], [], DEADLINE_S)[0]
            assert process.wait(DEADLINE_S) == (-signal.SIGKILL if number is signal.SIGKILL else 0)
        finally:
            os.close(pidfd)


CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", {child!r}])
"""


@pytest.mark.parametrize(("handler", "end_s"), [("SIG_DFL", DEADLINE_S), ("SIG_IGN", 0.5)], ids=["asked to", "killed"])
def test_the_programs_children_end_with_it(handler: str, end_s: float) -> None:
    """Its own children, which a signal to it alone would leave behind."""
    child = CHILD.format(child=BESIDE.format(handler=handler))
    with running(sys.executable, "-c", child, end_s=end_s) as process:
        pidfd = os.pidfd_open(until_said(process, "beside")["pid"])
        try:
            process.terminate()
            assert select.select([pidfd], [], [], DEADLINE_S)[0]
            process.wait(DEADLINE_S)
        finally:
            os.close(pidfd)


LEAVING = """sleep 600 <&- & echo '{"event": "beside", "pid": '$!'}'; read line; exit 3"""


def test_children_that_the_program_left_behind_end_with_the_relay() -> None:
    with running("sh", "-c", LEAVING) as process:
        pidfd = os.pidfd_open(until_said(process, "beside")["pid"])
        try:
            process.communicate("go on\n", DEADLINE_S)
            assert process.returncode == 2
            assert select.select([pidfd], [], [], 0)[0]
        finally:
            os.close(pidfd)


def test_the_program_beside_it_has_its_input_and_is_waited_for() -> None:
    with running(sys.executable, "-c", BESIDE.format(handler="SIG_DFL")) as process:
        ports = until_said(process, "listening")
        until_said(process, "beside")
        host, remote = (socket.create_connection(("127.0.0.1", ports[side]), TIMEOUT_S) for side in ("host", "remote"))
        until_said(process, "joined")
        host.close()
        remote.close()
        until_said(process, "closed")
        assert process.stdin is not None
        process.stdin.write("are you there?\n")
        process.stdin.flush()
        assert until_said(process, "heard")["line"] == "are you there?"
        process.stdin.close()
        assert until_said(process, "exited")["status"] == 0
        assert process.wait(DEADLINE_S) == 0


def test_a_program_that_ends_too_early_is_told_of_and_whoever_waits_is_reset() -> None:
    with running(sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(3)") as process:
        port = until_said(process, "listening")["remote"]
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as remote:
            until_said(process, "connected")
            _, told = process.communicate("go on\n", DEADLINE_S)
            with pytest.raises(ConnectionResetError):
                remote.recv(1)
        assert process.returncode == 2
    assert "ended, with status 3, before both" in told


def test_a_program_that_is_not_there_is_the_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relay", "--host-port", "0", "--remote-port", "0", "--", "/no/such/program"]) == 2
    assert "/no/such/program cannot be started: No such file" in capsys.readouterr().err
