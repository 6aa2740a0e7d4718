"""The client's address changes: what was connected is dark for good and nobody is told, what comes new passes."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.core.socket import TcpState
from lab.testbed.agent.process import AgentProcess
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import TestbedSpec

PORT = 5000
UNREACHABLE_S = 4.5
"""A router that asks in vain for a neighbour says so after three seconds."""


@dataclass
class Moved:
    """A testbed whose client has moved in the middle of an exchange."""

    testbed: NetnsTestbed
    server: AgentProcess
    old: AgentProcess
    """Its client from before."""

    was: str
    now: str


@pytest.fixture(scope="module", params=[False, True], ids=["IPv4", "IPv6"])
def moved(request: pytest.FixtureRequest) -> Iterator[Moved]:
    with NetnsTestbed(TestbedSpec(ipv6=request.param)) as testbed:
        server = testbed.server.spawn_module("lab.programs.server", (str(PORT), "--interval", "0.2"))
        server.wait_for_line("listening", 10)
        old = testbed.client.spawn_module("lab.programs.client", ("server", str(PORT), "--interval", "0.2"))
        old.wait_for_line('"received"', 10)
        was = testbed.client.ipv6 if request.param else testbed.client.ipv4
        testbed.move_client()
        yield Moved(testbed, server, old, was, testbed.client.ipv6 if request.param else testbed.client.ipv4)


def shown(testbed: NetnsTestbed, node: str, *command: str) -> str:
    process = getattr(testbed, node).spawn(command)
    assert process.wait(10) == 0, process.lines
    return "\n".join(line.text for line in process.lines)


def test_a_new_connection_comes_from_the_new_address(moved: Moved) -> None:
    assert moved.now != moved.was
    new = moved.testbed.client.spawn_module("lab.programs.client", ("server", str(PORT), "--idle-after", "1"))
    new.wait_for_line('"received"', 10)
    line = moved.server.wait_for_line('"connection": 2, .*"remote"', 10)

    assert f'"{moved.now}"' in line.text
    new.write("quit\n")


def test_the_old_connection_is_dark_both_ways_and_neither_kernel_is_told(moved: Moved) -> None:
    heard_at = moved.old.lines[-1].at
    with pytest.raises(TimeoutError):
        moved.server.wait_for_line(
            '"received".*"connection": 1|"connection": 1.*"received"', UNREACHABLE_S, since=heard_at + 0.3
        )
    for node in (moved.testbed.client, moved.testbed.server):
        held = [s for s in node.sockets() if moved.was in (s.local.address, s.remote.address)]
        assert [s.state for s in held] == [TcpState.ESTABLISHED]
        assert held[0].send_queue > 0, "what it sends is acknowledged by nobody"
    told = {name: count for name, count in moved.testbed.server.counters().items() if "InDestUnreachs" in name}

    assert set(told.values()) == {0}
    assert moved.old.returncode is None


def test_the_router_is_still_the_only_way_and_the_name_follows(moved: Moved) -> None:
    route = shown(
        moved.testbed, "client", "ip", "-6" if ":" in moved.now else "-4", "route", "get", ROUTES[":" in moved.now]
    )
    assert f"via {moved.testbed.router.ipv6 if ':' in moved.now else moved.testbed.router.ipv4}" in route
    assert f"src {moved.now}" in route
    code = "import socket; print(socket.getaddrinfo('client', 1)[0][4][0])"
    for node in ("client", "router", "server"):
        assert shown(moved.testbed, node, sys.executable, "-c", code) == moved.now


ROUTES = {False: "198.51.100.20", True: "2001:db8:2::20"}


def test_it_may_move_again(moved: Moved) -> None:
    before = moved.testbed.client.ipv4
    assert moved.testbed.move_client() == moved.testbed.client.ipv4 != before
    new = moved.testbed.client.spawn_module("lab.programs.client", ("server", str(PORT), "--idle-after", "1"))

    new.wait_for_line('"received"', 10)


def test_the_machines_own_names_and_addresses_are_untouched(moved: Moved) -> None:
    seen = subprocess.run(["cat", "/etc/hosts"], capture_output=True, text=True, check=True).stdout

    assert moved.now not in seen
    assert moved.was not in seen
