"""SIGKILL of the lab at any moment of a run, as root and as an ordinary user: the machine is as it was before."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import lab
from tests.robustness.runs import until
from tests.testbed.netns.test_clean_up import host_state, namespaces, processes, wait_until_gone
from tests.testbed.netns.test_rootless import interpreter_for_everyone

AT_ONCE = 5
LONGEST_S = 60.0

RUN = (
    "run", "--server", "{python} -m lab.programs.server 5000",
    "--client", "{python} -m lab.programs.client server 5000", "--port", "5000",
    "--profile", "fast", "--cut-after", "0.2s", "--heal-after", "0.5s", "--for", "1s",
)  # fmt: skip
DEMO = ("demo",)
SCRIPT = """
import sys
from lab.api import blackhole
python = sys.executable
blackhole([python, "-m", "lab.programs.server", "5000"], [python, "-m", "lab.programs.client", "server", "5000"], 5000,
          profile="fast", cut_after_s=0.2, watch_s=1.0)
"""


@dataclass(frozen=True, slots=True)
class Victim:
    """One calling process, and how to find all that it starts."""

    process: "subprocess.Popen[bytes]"
    marked: str
    folder: Path
    """Everything that it may write to: working folder, home and temporary files."""


@dataclass(frozen=True, slots=True)
class User:
    """Who runs the lab."""

    python: str
    become: tuple[str, ...]
    uid: int


@pytest.fixture(params=["as root", "as an ordinary user"])
def user(request: pytest.FixtureRequest) -> User:
    if request.param == "as root":
        if os.geteuid() != 0:
            pytest.skip("these tests do not run as root")
        return User(sys.executable, (), 0)
    python = interpreter_for_everyone()
    if os.geteuid() != 0:
        return User(python, (), os.geteuid())
    # By way of env: setpriv itself still holds root's capabilities when it executes its argument.
    return User(python, ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env"), 65534)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach; pytest's own are root's."""
    path = Path(tempfile.mkdtemp(prefix="kills-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def command(number: int, user: User) -> list[str]:
    """Three ways to start the lab, in turn."""
    if number % 3 == 0:
        return [user.python, "-c", SCRIPT]
    words = RUN if number % 3 == 1 else DEMO
    return [user.python, "-m", "lab", *(word.format(python=user.python) for word in words)]


def start(number: int, user: User, folder: Path) -> Victim:
    own = folder / str(number)
    own.mkdir()
    os.chown(own, user.uid, -1)
    name, value = "LAB_TEST_MARK", f"{os.getpid()}-{random.random()}"
    path = [str(Path(lab.__file__).parents[1]), *(entry for entry in sys.path if entry.endswith("site-packages"))]
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": ":".join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(own),
        "TMPDIR": str(own),
        "XDG_RUNTIME_DIR": str(own),
        name: value,
    }
    nowhere = subprocess.DEVNULL
    words = [*user.become, *command(number, user)]
    process = subprocess.Popen(words, cwd=own, env=env, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    return Victim(process, f"{name}={value}", own)


def moment(number: int, source: random.Random) -> float:
    """How long to wait: short, where most happens in little time, around the cut and the end of short runs, or any."""
    return source.uniform(0.0, (2.0, 5.0, 11.0)[number // 3 % 3])


def has_begun(victim: Victim) -> bool:
    """Whether it has started its fork server, and so everything that could be left behind."""
    try:
        return bool(Path(f"/proc/{victim.process.pid}/task/{victim.process.pid}/children").read_text())
    except OSError:
        return True


def kill_at(number: int, after_s: float, user: User, folder: Path) -> str:
    """Start, kill at the moment, and wait until nothing is left; the moment in words, for the statistics."""
    victim = start(number, user, folder)
    if number % 4:
        # Three of four count from here: loading a program is its longest part, and the least dangerous.
        until(lambda: has_begun(victim), LONGEST_S)
    try:
        status = victim.process.wait(after_s)
        # Before its moment: confirmed, or disturbed by the others.
        assert status in (0, 3)
        state = f"ended with status {status}"
    except subprocess.TimeoutExpired:
        state = "killed"
    made = namespaces(processes(victim.marked))
    held = [fd for fd in map(_opened, made.values()) if fd is not None]
    victim.process.kill()
    victim.process.wait()
    wait_until_gone(victim.marked)
    try:
        assert still_used(set(made)) == set()
    finally:
        for fd in held:
            os.close(fd)
    assert leftovers(victim.folder) == []
    return f"{state} , {len(made)} namespaces"


def _opened(link: Path) -> int | None:
    """Held open, or the kernel may give a namespace's number to one that another program makes meanwhile."""
    try:
        return os.open(link, os.O_RDONLY)
    except OSError:
        return None


def still_used(made: set[str]) -> set[str]:
    """Those namespaces in which any process of the machine still is; what is dead and not reaped yet gets some time."""
    deadline = time.monotonic() + 10
    while True:
        everybody = [int(process.name) for process in Path("/proc").iterdir() if process.name.isdecimal()]
        used = made & set(namespaces(everybody))
        if not used or time.monotonic() > deadline:
            return used
        time.sleep(0.05)


def leftovers(folder: Path) -> list[str]:
    """Files outside the run's folder, and unfinished ones in it, once `lab clean` has been there."""
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": str(Path(lab.__file__).parents[1])}
    subprocess.run([sys.executable, "-m", "lab", "clean"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    found = [path for path in folder.rglob("*") if path.is_file()]
    strange = [p for p in found if p.relative_to(folder).parts[0] != "runs" or p.name.startswith(".")]
    # ``.cache`` is matplotlib's, which keeps its list of fonts there.
    return sorted(str(p.relative_to(folder)) for p in strange if ".cache" not in p.parts)


def rules() -> dict[str, str]:
    """What the host's own firewalls hold, without counters."""
    commands = (["iptables-legacy-save"], ["ip6tables-legacy-save"], ["nft", "-s", "list", "ruleset"])
    said = {words[0]: subprocess.run(words, capture_output=True, text=True, check=False).stdout for words in commands}
    # Without the comments, which hold the time, and the chains' counters, which the host's own traffic moves.
    return {name: re.sub(r"^#.*\n| \[\d+:\d+\]$", "", text, flags=re.MULTILINE) for name, text in said.items()}


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_sigkill_at_any_moment_leaves_the_machine_as_it_was(user: User, folder: Path, count: int) -> None:
    moments = random.Random(2024)
    before, before_rules = host_state(), rules()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(kill_at, n, moment(n, moments), user, folder) for n in range(count)]
        seen = [run.result(LONGEST_S * count) for run in runs]

    sys.stdout.write("".join(f"{one}\n" for one in seen))
    assert any(one.startswith("killed") for one in seen)
    assert host_state() == before
    assert rules() == before_rules


def test_a_fork_server_that_was_stopped_when_its_owner_died_is_found_by_lab_clean(user: User, folder: Path) -> None:
    victim = start(1, user, folder)
    deadline = time.monotonic() + LONGEST_S
    while not any(_comm(pid) == "lab-client" for pid in processes(victim.marked)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for pid in processes(victim.marked):
        if _comm(pid).startswith("lab-") or _is_fork_server(pid):
            os.kill(pid, signal.SIGSTOP)
    victim.process.kill()
    victim.process.wait()
    assert processes(victim.marked)

    clean = [*user.become, user.python, "-m", "lab", "clean"]
    path = [str(Path(lab.__file__).parents[1]), *(entry for entry in sys.path if entry.endswith("site-packages"))]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)}
    told = subprocess.run(clean, cwd=victim.folder, env=env, capture_output=True, text=True, check=False)

    assert "removed process" in told.stdout, told.stderr
    wait_until_gone(victim.marked)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _is_fork_server(pid: int) -> bool:
    try:
        return b"blackhole-lab-forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
