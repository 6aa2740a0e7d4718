"""What a caller that was killed leaves behind: nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.testbed.netns import NetnsTestbed, launcher

CALLER = """
import sys
from lab.testbed.netns import NetnsTestbed
print("started", flush=True)
with NetnsTestbed() as testbed:
    print("up", flush=True)
    testbed.client.spawn(["sh", "-c", "setsid sleep 600 & exec sleep 600"])
    testbed.server.spawn(["sleep", "600"])
    print("busy", flush=True)
    sys.stdin.read()
"""


def mark() -> str:
    """A word that every process of one caller has in its environment or that of the process it was forked from."""
    return f"LAB_TEST_MARK={os.getpid()}-{random.random()}"


def start(marked: str) -> "subprocess.Popen[str]":
    name, value = marked.split("=")
    return subprocess.Popen(
        [sys.executable, "-c", CALLER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, name: value},
    )


def processes(marked: str) -> list[int]:
    """Every process of a caller, by the environment that they all inherited."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if marked.encode() in environment:
                found.append(int(process.name))
    return found


def namespaces(pids: list[int]) -> dict[str, Path]:
    """Namespaces of processes that this one is not in, each with a link to it."""
    found = {}
    for pid in pids:
        for kind in ("user", "net", "pid", "mnt", "uts"):
            link = Path(f"/proc/{pid}/ns/{kind}")
            try:
                name = str(link.readlink())
            except OSError:
                continue
            if name != str(Path(f"/proc/self/ns/{kind}").readlink()):
                found[name] = link
    return found


def every_process() -> list[int]:
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdecimal()]


def wait_until_gone(marked: str) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not processes(marked):
            return
        time.sleep(0.01)
    pytest.fail(f"left behind: {processes(marked)}")


def kill(caller: "subprocess.Popen[str]") -> None:
    caller.kill()
    caller.wait()
    for pipe in (caller.stdin, caller.stdout):
        assert pipe is not None
        pipe.close()


def test_sigkill_of_a_busy_caller_leaves_no_process_and_no_namespace() -> None:
    marked = mark()
    caller = start(marked)
    assert caller.stdout is not None
    while caller.stdout.readline() != "busy\n":
        assert caller.poll() is None
    pids = processes(marked)
    made = namespaces(pids)
    # The caller, the fork server's two, services, keeper, three agents, and at least two commands.
    assert len(pids) >= 10
    assert len(made) >= 8
    # Held open, or the kernel may give a namespace's number to one that another program makes meanwhile.
    held = [os.open(link, os.O_RDONLY) for link in made.values()]

    kill(caller)

    wait_until_gone(marked)
    deadline = time.monotonic() + 10
    # What is dead but not reaped yet by the machine's init has its user namespace still.
    while still_used := set(made) & set(namespaces(every_process())):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    for fd in held:
        os.close(fd)
    assert still_used == set()


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_sigkill_at_random_moments_leaves_nothing(count: int) -> None:
    moments = random.Random(20)
    before = files()
    for _ in range(count):
        marked = mark()
        caller = start(marked)
        time.sleep(moments.uniform(0.02, 0.9))
        kill(caller)
        wait_until_gone(marked)
    assert files() - before == set()


def files() -> set[Path]:
    """Files of the lab in the places for temporary ones."""
    places = [Path("/tmp"), Path("/run"), Path(os.environ.get("XDG_RUNTIME_DIR", "/run"))]
    return {path for place in places for path in place.iterdir() if "lab" in path.name and "pytest" not in path.name}


def test_the_orderly_end_of_a_caller_waits_for_its_processes() -> None:
    marked = mark()
    caller = start(marked)
    caller.communicate()

    assert caller.returncode == 0
    assert processes(marked) == []


def test_a_forked_child_that_outlives_the_caller_does_not_keep_its_testbed() -> None:
    code = (
        CALLER
        + """
    import os
    if os.fork() == 0:
        import time
        time.sleep(60)
    os.kill(os.getpid(), 9)
"""
    )
    code = code.replace("    sys.stdin.read()\n", "")
    marked = mark()
    name, value = marked.split("=")
    caller = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env={**os.environ, name: value}, stdout=subprocess.DEVNULL
    )
    assert caller.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while len(processes(marked)) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)

    # Only the forked copy of the caller itself is left.
    (child,) = processes(marked)
    os.kill(child, signal.SIGKILL)


def host_state() -> dict[str, object]:
    """Links, addresses, routes, rules and every net sysctl that can be read, of this process's own namespace."""
    commands = (
        ["ip", "-j", "link"],
        ["ip", "-j", "address"],
        ["ip", "-j", "route", "show", "table", "all"],
        ["ip", "-j", "-6", "route", "show", "table", "all"],
        ["ip", "netns"],
        ["iptables-save"],
        ["nft", "-j", "list", "ruleset"],
    )
    state: dict[str, object] = {}
    for command in commands:
        try:
            state[" ".join(command)] = stable(subprocess.run(command, capture_output=True, text=True).stdout)
        except FileNotFoundError:
            continue
    for path in Path("/proc/sys/net").rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o200:
            try:
                state[str(path)] = path.read_text()
            except OSError:
                continue
    return state


def stable(output: str) -> object:
    """Output without counters and the remaining lifetimes of leases."""
    try:
        parsed = json.loads(output)
    except ValueError:
        return [line for line in output.splitlines() if not line.startswith(("#", ":"))]
    return json.dumps(parsed, sort_keys=True) if "valid_life_time" not in output else without_lifetimes(parsed)


def without_lifetimes(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_lifetimes(inner) for key, inner in value.items() if not key.endswith("life_time")}
    if isinstance(value, list):
        return [without_lifetimes(inner) for inner in value]
    return value


def test_the_hosts_network_is_exactly_as_before() -> None:
    launcher.shut_down()
    before = host_state()

    with NetnsTestbed() as testbed:
        testbed.router.write_sysctl("net.ipv4.tcp_retries2", "3")
        during = host_state()
    launcher.shut_down()

    assert during == before
    assert host_state() == before
