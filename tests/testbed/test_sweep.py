import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.testbed import sweep
from lab.testbed.netns import NetnsTestbed, launcher
from lab.testbed.netns.forkserver import MARK
from lab.testbed.owner import identity
from lab.testbed.sweep import Leftover
from tests.testbed.test_runtime import killed_owner

OWNER = """
import sys
from lab.testbed.netns import NetnsTestbed
with NetnsTestbed() as testbed:
    testbed.client.spawn(["sleep", "600"])
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def wait_until(condition: object, deadline_s: float = 10) -> None:
    assert callable(condition)
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stopped_leftover() -> tuple[str, list[int]]:
    """A fork server that could not end with its owner, because it was stopped: the owner, and its processes."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdin is not None
    assert owner.stdout.readline() == "up\n"
    name = identity(owner.pid)
    pids = [pid for pid in processes() if sweep._owner(pid) == name]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    return name, pids


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def test_a_living_owners_testbed_and_folder_are_left_alone() -> None:
    with NetnsTestbed() as testbed:
        assert launcher._server is not None
        assert [pid for pid in processes() if sweep._owner(pid) == identity(os.getpid())]
        assert [one for one in sweep.find() if one.owner == identity(os.getpid())] == []
        sweep.sweep()
        assert testbed.client.spawn(["true"]).wait(10) == 0


def test_a_stopped_fork_server_of_a_dead_owner_is_ended_with_all_its_testbeds() -> None:
    owner, pids = stopped_leftover()
    assert len(pids) >= 6
    found = [one for one in sweep.find() if one.owner == owner]
    assert {one.name for one in found} == {str(pid) for pid in pids}
    assert {one.kind for one in found} == {"process"}

    removed = sweep.sweep()

    assert [one for one in removed if one.owner == owner]
    wait_until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()])
    assert [one for one in sweep.find() if one.owner == owner] == []


def test_a_killed_owners_folder_is_removed() -> None:
    folder = killed_owner()
    owner = folder.name.rpartition("-")[0]

    assert Leftover("folder", str(folder), owner) in sweep.sweep()
    assert not folder.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "import time; time.sleep(60)", MARK, "3", "{dead}"],
        ["-c", "import time; time.sleep(60)  # lab.testbed.netns.forkserver", "other", "3", "{dead}"],
        ["-c", "import time; time.sleep(60)  # lab.testbed.netns.forkserver", MARK, "x", "{dead}"],
        ["-c", "import time; time.sleep(60)  # lab.testbed.netns.forkserver", MARK, "3", "{dead}", "more"],
    ],
)
def test_a_process_that_only_resembles_a_fork_server_is_left_alone(words: list[str]) -> None:
    dead = subprocess.Popen(["true"])
    name = identity(dead.pid)
    dead.wait()
    lookalike = subprocess.Popen([sys.executable, *(word.format(dead=name) for word in words)])
    try:
        wait_until(lambda: "time.sleep(60)" in Path(f"/proc/{lookalike.pid}/cmdline").read_text())
        assert sweep._owner(lookalike.pid) is None
    finally:
        lookalike.kill()
        lookalike.wait()
