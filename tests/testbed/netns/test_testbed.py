import ast
import gc
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.core.errors import InvalidRun, UsageError
from lab.testbed.agent.nodes import AgentNode
from lab.testbed.netns import NetnsTestbed, launcher, open_testbed
from lab.testbed.ports import TestbedSpec

SERVER = """
import socket
listener = socket.create_server(("", {port}), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
connection, (address, *_) = listener.accept()
print("from", address, flush=True)
while data := connection.recv(4096):
    connection.sendall(data.upper())
"""

CLIENT = """
import socket
connection = socket.create_connection(("server", {port}), timeout=10)
connection.sendall(b"hello")
print("to", connection.getpeername()[0], connection.recv(4096).decode())
"""


def talk(testbed: NetnsTestbed, port: int) -> tuple[str, str]:
    """What the client and the server print of one exchange through the router."""
    server = testbed.server.spawn([sys.executable, "-c", SERVER.format(port=port)])
    server.wait_for_line("listening", 10)
    client = testbed.client.spawn([sys.executable, "-c", CLIENT.format(port=port)])
    assert client.wait(10) == 0, client.lines
    assert server.wait(10) == 0, server.lines
    return client.lines[0].text, server.lines[1].text


def python(node: AgentNode, code: str) -> object:
    """The literal that a program prints in a node."""
    program = node.spawn([sys.executable, "-c", code])
    assert program.wait(10) == 0, program.lines
    return ast.literal_eval("\n".join(line.text for line in program.lines))


def test_client_reaches_the_server_by_name_through_the_router(testbed: NetnsTestbed) -> None:
    before = testbed.router.read_sysctl("net.ipv4.ip_forward")

    seen_by_client, seen_by_server = talk(testbed, 7001)

    assert before == "1"
    assert seen_by_client == f"to {testbed.server.ipv4} HELLO"
    assert seen_by_server == f"from ::ffff:{testbed.client.ipv4}"


def test_names_resolve_to_ipv6_where_asked_for() -> None:
    with NetnsTestbed(TestbedSpec(ipv6=True)) as testbed:
        seen_by_client, seen_by_server = talk(testbed, 80)

    assert seen_by_client == f"to {testbed.server.ipv6} HELLO"
    assert seen_by_server == f"from {testbed.client.ipv6}"


@pytest.mark.parametrize("node", ["client", "router", "server"])
def test_every_name_resolves_in_every_node_and_unknown_names_fail_at_once(testbed: NetnsTestbed, node: str) -> None:
    code = """
import socket, time
known = {name: socket.gethostbyname(name) for name in ("client", "router", "server", "localhost")}
began = time.monotonic()
try:
    socket.gethostbyname("unknown.example")
    known["unknown.example"] = "resolved"
except socket.gaierror:
    pass
known["quick"] = time.monotonic() - began < 2
known["own"] = socket.gethostname()
print(known)
"""
    assert python(getattr(testbed, node), code) == {
        "client": testbed.client.ipv4,
        "router": testbed.router.ipv4,
        "server": testbed.server.ipv4,
        "localhost": "127.0.0.1",
        "quick": True,
        "own": node,
    }


def test_an_ordinary_program_may_bind_a_low_port(testbed: NetnsTestbed) -> None:
    assert talk(testbed, 443)[0].endswith("HELLO")


def test_the_routers_addresses_are_the_only_next_hops(testbed: NetnsTestbed) -> None:
    code = "print([line.split()[:4] for line in open('/proc/net/route')][1:])"

    # Destination and gateway in the kernel's byte order: the default route, and the link's own network.
    routes = python(testbed.client, code)

    assert sorted(routes) == [  # type: ignore[call-overload]
        ["left", "00000000", "010200C0", "0003"],
        ["left", "000200C0", "00000000", "0001"],
    ]


def test_nodes_see_only_the_testbeds_own_processes(testbed: NetnsTestbed) -> None:
    pids = python(testbed.client, "import os; print([int(name) for name in os.listdir('/proc') if name.isdecimal()])")

    assert isinstance(pids, list)
    assert 1 in pids
    assert len(pids) < 20


def test_sysctls_of_the_spec_are_set_before_anything_runs() -> None:
    with NetnsTestbed(TestbedSpec(sysctls={"server": {"net.ipv4.tcp_retries2": "7"}})) as testbed:
        assert testbed.server.read_sysctl("net.ipv4.tcp_retries2") == "7"
        assert testbed.client.read_sysctl("net.ipv4.tcp_retries2") != "7"


def test_an_unknown_node_or_key_in_the_spec_is_the_authors_mistake() -> None:
    with pytest.raises(UsageError, match="no node 'sever'"):
        NetnsTestbed(TestbedSpec(sysctls={"sever": {}}))
    with pytest.raises(UsageError, match=r"vm\.swappiness"):
        NetnsTestbed(TestbedSpec(sysctls={"server": {"vm.swappiness": "1"}}))


def test_close_ends_every_process_before_it_returns_and_may_be_repeated() -> None:
    testbed = NetnsTestbed()
    program = testbed.client.spawn(["sleep", "600"])
    assert Path(f"/proc/{program.pid}").exists()

    testbed.close()
    testbed.close()

    assert not Path(f"/proc/{program.pid}").exists()
    with pytest.raises(TimeoutError, match="testbed was closed"):
        program.wait(5)
    with pytest.raises(InvalidRun, match="closed"):
        testbed.client.spawn(["true"])


def test_a_daemonised_grandchild_ends_with_the_testbed() -> None:
    daemonise = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        time.sleep(600)
    os._exit(0)
"""
    with NetnsTestbed() as testbed:
        parent = testbed.server.spawn([sys.executable, "-c", daemonise])
        assert parent.wait(10) == 0
        alive = python(
            testbed.server,
            "import os; print([open(f'/proc/{p}/cmdline').read().split(chr(0))[2:3] for p in os.listdir('/proc')"
            " if p.isdecimal() and int(p) != os.getpid()])",
        )
        assert [daemonise] in alive  # type: ignore[operator]
        outside = [pid for pid, words in command_lines() if daemonise in words]
        assert len(outside) == 1

    assert not [pid for pid, words in command_lines() if daemonise in words]


def command_lines() -> list[tuple[int, list[str]]]:
    """Every process that this one can see, with its arguments."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                found.append((int(process.name), (process / "cmdline").read_text().split("\0")))
            except OSError:
                continue
    return found


def test_twenty_testbeds_at_once_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(20) as pool:
        testbeds = list(pool.map(lambda _: open_testbed(), range(20)))
        try:
            for number, testbed in enumerate(testbeds):
                testbed.client.write_sysctl("net.ipv4.tcp_retries2", str(number + 1))
            answers = list(pool.map(lambda testbed: talk(testbed, 80), testbeds[:6]))
            settings = [testbed.client.read_sysctl("net.ipv4.tcp_retries2") for testbed in testbeds]
        finally:
            list(pool.map(NetnsTestbed.close, testbeds))

    assert all(client.endswith("HELLO") for client, _ in answers)
    assert settings == [str(number + 1) for number in range(20)]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_testbed_costs_the_caller_few_descriptors_and_gives_them_back() -> None:
    open_testbed().close()
    gc.collect()
    before = descriptors()
    threads = threading.active_count()

    with NetnsTestbed():
        during = descriptors()

    assert during - before <= 6
    assert descriptors() == before
    assert threading.active_count() == threads


LIMITED = """
import os, resource
from lab.core.errors import EnvironmentNotReady
from lab.testbed.netns import NetnsTestbed
with NetnsTestbed() as first:
    used = max(int(fd) for fd in os.listdir("/proc/self/fd"))
    for room in range(0, 12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, 4096))
        try:
            NetnsTestbed().close()
        except EnvironmentNotReady as error:
            print(room, error)
        else:
            print(room, "up")
    assert first.client.spawn(["true"]).wait(10) == 0
"""


def test_a_process_without_descriptors_to_spare_is_told_so_and_keeps_what_it_has() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
    answers = [line.partition(" ")[2] for line in done.stdout.splitlines()]
    refusals = [answer for answer in answers if answer != "up"]
    assert answers[-1] == "up"
    assert refusals
    assert all("too many open files" in refusal and "ulimit -n" in refusal for refusal in refusals)


@pytest.mark.slow
def test_a_hundred_testbeds_at_once_come_up_within_the_usual_limit_of_descriptors() -> None:
    before = descriptors()
    with ThreadPoolExecutor(10) as pool:
        testbeds = list(pool.map(lambda _: open_testbed(), range(100)))
        used = descriptors() - before
        forwarding = {testbed.router.read_sysctl("net.ipv4.ip_forward") for testbed in testbeds}
        list(pool.map(NetnsTestbed.close, testbeds))

    assert used <= 600
    assert forwarding == {"1"}
    assert descriptors() <= before + 4


def test_a_new_fork_server_is_started_when_the_old_one_was_killed() -> None:
    testbed = open_testbed()
    server = launcher._server
    assert server is not None
    children = Path(f"/proc/{server._process.pid}/task/{server._process.pid}/children").read_text().split()
    os.kill(int(children[0]), 9)
    program = testbed.client
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            program.read_sysctl("net.ipv4.ip_forward")
        except InvalidRun:
            break
    else:
        pytest.fail("the testbed outlived its fork server")
    testbed.close()

    with open_testbed() as another:
        assert another.backend == "netns"
