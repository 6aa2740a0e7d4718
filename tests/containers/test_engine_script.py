"""scripts/engine.sh with a stand-in for dockerd: the real one's ways with pid files and sockets, and no containers."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.testbed.docker.images.image import package_root

SCRIPT = package_root().parent / "scripts/engine.sh"

DOCKERD = """\
#!{python}
import http.server, os, pathlib, signal, socketserver, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
pid, path = pathlib.Path(options["--pidfile"]), options["--host"].removeprefix("unix://")
if os.environ.get("FAKE_FAILS"):
    sys.exit("failed to start daemon: no such driver")
if pid.exists() and pathlib.Path("/proc", pid.read_text()).exists():
    sys.exit(f"pid file found, ensure docker is not running or delete {{pid}}")
if os.path.exists(path):
    sys.exit(f"can't create unix socket {{path}}: address in use")
pid.write_text(str(os.getpid()))

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def address_string(self):
        return "local"

def end(*_):
    pid.unlink(), os.unlink(path), print("ended", flush=True), os._exit(0)

signal.signal(signal.SIGTERM, signal.SIG_IGN if os.environ.get("FAKE_IS_DEAF") else end)
socketserver.UnixStreamServer(path, Answers).serve_forever()
"""


class Machine:
    """A folder with its own /var/run and its own dockerd."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.state = folder / "state"
        self.pid_file = self.run / "docker.pid"
        self.socket = self.run / "docker.sock"
        self._tools = folder / "tools"
        self._tools.mkdir()
        self.run.mkdir()
        dockerd = self._tools / "dockerd"
        dockerd.write_text(DOCKERD.format(python=sys.executable), encoding="utf-8")
        dockerd.chmod(0o755)
        # Nothing is installed by a test.
        for name in ("docker-compose", "apt-get"):
            (self._tools / name).symlink_to("/bin/true")

    def engine(self, verb: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script."""
        path = f"{self._tools}:{os.environ['PATH']}"
        known = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
        return subprocess.run(
            [str(SCRIPT), verb, str(folder or self.state)],
            env=known | {"PATH": path, "ENGINE_RUN": str(self.run)} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    @property
    def log(self) -> str:
        """What dockerd said."""
        return (self.state / "dockerd.log").read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        """The engine's process."""
        return int(self.pid_file.read_text(encoding="ascii"))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("only root starts an engine")
    made = Machine(tmp_path)
    yield made
    made.engine("stop")


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def test_what_it_started_it_ends(machine: Machine) -> None:
    started = machine.engine("start")
    pid = machine.pid
    ended = machine.engine("stop")

    assert (started.returncode, ended.returncode) == (0, 0), started.stderr + ended.stderr
    assert f"started dockerd, process {pid}" in started.stderr
    assert not is_there(pid)
    assert machine.log.endswith("ended\n")


def test_it_passes_twice_in_a_row(machine: Machine) -> None:
    for _ in range(2):
        assert machine.engine("start").returncode == 0
        assert machine.engine("stop").returncode == 0


def test_an_engine_that_answers_is_used_and_left_alone(machine: Machine, tmp_path: Path) -> None:
    machine.engine("start")
    pid = machine.pid

    again = machine.engine("start", tmp_path / "other")
    machine.engine("stop", tmp_path / "other")

    assert again.returncode == 0
    assert f"one answers at unix://{machine.socket}" in again.stderr
    assert is_there(pid)


def test_what_a_killed_engine_left_does_not_stop_the_next(machine: Machine) -> None:
    machine.engine("start")
    os.kill(machine.pid, signal.SIGKILL)

    assert machine.socket.exists()
    assert machine.engine("start").returncode == 0


@pytest.mark.parametrize("stale", ["of-this-process", "99999999", "", "no number"])
def test_a_pid_file_that_names_no_engine_is_removed(machine: Machine, stale: str) -> None:
    machine.pid_file.write_text(str(os.getpid()) if stale == "of-this-process" else stale, encoding="ascii")
    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(str(machine.socket))

    assert machine.engine("start").returncode == 0
    assert machine.pid != os.getpid()


def test_a_containerd_that_is_none_is_forgotten(machine: Machine) -> None:
    stale = machine.run / "docker/containerd/containerd.pid"
    stale.parent.mkdir(parents=True)
    stale.write_text(str(os.getpid()), encoding="ascii")

    machine.engine("start")
    machine.engine("stop")

    assert not stale.exists()


def test_an_engine_that_ends_at_once_is_reported_with_its_words(machine: Machine) -> None:
    failed = machine.engine("start", FAKE_FAILS="1")

    assert failed.returncode == 5
    assert "failed to start daemon: no such driver" in failed.stderr
    assert not (machine.state / "dockerd.started").exists()


def test_an_engine_elsewhere_is_not_replaced_by_one_here(machine: Machine) -> None:
    refused = machine.engine("start", DOCKER_HOST="unix:///nowhere/docker.sock")

    assert refused.returncode == 5
    assert "none answers at DOCKER_HOST=unix:///nowhere/docker.sock" in refused.stderr
    assert not machine.pid_file.exists()


def test_stop_without_start_does_nothing(machine: Machine) -> None:
    assert machine.engine("stop").returncode == 0


@pytest.mark.slow
def test_an_engine_that_does_not_end_is_killed(machine: Machine) -> None:
    machine.engine("start", FAKE_IS_DEAF="1")
    pid = machine.pid

    assert "killing it" in machine.engine("stop").stderr
    assert not is_there(pid)
