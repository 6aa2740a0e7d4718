"""A testbed up and down against a hand-written script that sets up the same, and a hundred testbeds at once.

The script (``by_hand.sh``) makes three named namespaces with ``ip netns``, two links, addresses and routes of both
families, offloads and sysctls as the lab sets them. It makes no processes, no hosts file, no clean-up after a crash.
It runs in a mount namespace of its own, so that nothing of it is left on the machine.
"""

import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.figures import Figure, milliseconds, ratio
from benchmarks.processes import available_bytes, descendants, every_pid, namespaces, resident_bytes
from lab.testbed.netns import NetnsTestbed, launcher, open_testbed

BY_HAND = Path(__file__).with_name("by_hand.sh")
ROUNDS = 40
SETTLE_S = 0.1
"""Namespaces are taken apart by the kernel in its own time; nobody shall pay for another's."""

MANY = 100
AGENTS = ("lab-client", "lab-router", "lab-server")
STARTERS = 8
"""Threads that ask for testbeds."""

PORT = 5000

LISTENS = f"""
import socket
listener = socket.create_server(("", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
for _ in range(2):
    listener.accept()
"""

CONNECTS = f"""
import socket, time
deadline = time.monotonic() + 10
for address in ("198.51.100.20", "2001:db8:2::20"):
    while True:
        try:
            socket.create_connection((address, {PORT}), timeout=10)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
"""
"""Shows that the script's testbed carries connections of both families."""

Script = Callable[[str], float]


@pytest.fixture
def by_hand() -> Iterator[Script]:
    """Runs the script and says how many seconds it took."""
    for tool in ("unshare", "ip", "sysctl", "ethtool"):
        if shutil.which(tool) is None:
            pytest.skip(f"the hand-written script needs {tool}, which is not installed")
    with _shell() as run:
        run("mount -t tmpfs none /run")

        def script(verb: str) -> float:
            began = time.monotonic()
            run(f"sh {shlex.quote(str(BY_HAND))} {verb}")
            return time.monotonic() - began

        script("up")
        run(f"ip netns exec server {sys.executable} -c {shlex.quote(LISTENS)} &")
        run(f"ip netns exec client {sys.executable} -c {shlex.quote(CONNECTS)}")
        script("down")
        yield script


def test_up_and_down_against_a_script(by_hand: Script, figures: Callable[[Figure], None]) -> None:
    """The lab's time ends when every node has answered a call, the script's when it has ended."""
    launcher.shut_down()
    began = time.monotonic()
    open_testbed().close()
    first_s = time.monotonic() - began
    ours, theirs = [], []
    for _ in range(ROUNDS):
        time.sleep(SETTLE_S)
        ours.append(_up_and_down())
        time.sleep(SETTLE_S)
        theirs.append((by_hand("up"), by_hand("down")))
    sides = {"up alone": 0, "down alone": 1}
    measured = {what: ([pair[side] for pair in ours], [pair[side] for pair in theirs]) for what, side in sides.items()}
    measured = {"up and down": (list(map(sum, ours)), list(map(sum, theirs))), **measured}
    for what, (lab, script) in measured.items():
        goal = "not slower" if what == "up and down" else ""
        faster = ratio(script, lab)
        figures(
            Figure(
                f"n-th testbed, {what}",
                milliseconds(lab),
                f"`ip netns` script: {milliseconds(script)}",
                f"{faster:.1f} times as fast",
                goal,
                faster >= 1 if goal else None,
            )
        )
    figures(
        Figure(
            "first testbed of a process, up and down",
            f"{first_s * 1000:.0f} ms",
            "n-th testbed",
            f"{first_s / (sum(map(sum, ours)) / ROUNDS):.0f} times as long",
        )
    )
    assert ratio(measured["up and down"][1], measured["up and down"][0]) >= 1


def test_a_hundred_at_once(figures: Callable[[Figure], None]) -> None:
    """All stand at the same time, each carries one connection through its router, and all go without a trace."""
    _allow_descriptors()
    with open_testbed() as one:
        _talk(one)
    before = {stat.pid for stat in descendants()}
    free, memory = available_bytes(), resident_bytes()
    began = time.monotonic()
    with ThreadPoolExecutor(STARTERS) as pool:
        testbeds = list(pool.map(lambda _: open_testbed(), range(MANY)))
        up = time.monotonic()
        heard = list(pool.map(_talk, testbeds))
        talked = time.monotonic()
        memory, free = resident_bytes() - memory, free - available_bytes()
        stood = namespaces(stat.pid for stat in descendants() if stat.name in AGENTS)
        closing = time.monotonic()
        list(pool.map(NetnsTestbed.close, testbeds))
        down = time.monotonic()
    assert heard == ["received"] * MANY
    assert len(stood) == len(AGENTS) * MANY, "every node had a namespace of its own"
    assert {stat.pid for stat in descendants()} <= before
    assert not stood & namespaces(every_pid())
    figures(
        Figure(
            f"{MANY} testbeds at once",
            f"up {up - began:.1f} s, a verified exchange in each {talked - up:.1f} s, down {down - closing:.1f} s",
            f"memory: {memory / MANY / 1e6:.1f} MB of processes each; all {MANY} took {free / 1e6:.0f} MB of what the"
            " machine had left",
            f"{(up - began) / MANY * 1000:.0f} ms up, {(down - closing) / MANY * 1000:.0f} ms down each",
            f"{MANY} of {MANY} talk, nothing left behind",
            met=True,
        )
    )


def _up_and_down() -> tuple[float, float]:
    began = time.monotonic()
    testbed = open_testbed()
    for node in (testbed.client, testbed.router, testbed.server):
        node.read_sysctl("net.ipv4.ip_forward")
    up = time.monotonic()
    testbed.close()
    return up - began, time.monotonic() - up


def _talk(testbed: NetnsTestbed) -> str:
    """One line to the server and back, by the lab's own programs; the event that says so."""
    server = testbed.server.spawn_module("lab.programs.server", (str(PORT),))
    server.wait_for_line("listening", 60)
    client = testbed.client.spawn_module("lab.programs.client", ("server", str(PORT)))
    return "received" if '"received"' in client.wait_for_line('"received"', 60).text else ""


def _allow_descriptors() -> None:
    """A testbed takes about ten descriptors of its caller."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _shell() -> Iterator[Callable[[str], None]]:
    """A waiting shell in user, network and mount namespaces of its own; what it is told it has done when it returns."""
    argv = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as shell:
        stdin, stdout = shell.stdin, shell.stdout
        assert stdin is not None
        assert stdout is not None

        def run(command: str) -> None:
            stdin.write(f"{command} >&2 </dev/null; echo $?\n")
            status = stdout.readline().strip()
            assert status == "0", f"{command}: exit status {status or 'unknown'}, its messages are above"

        yield run
        stdin.close()
