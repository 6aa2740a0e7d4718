"""What the nodes and the router offer, each once, on one flow that really runs."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Cut, Fault, Matched, Placement
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import TcpState
from lab.testbed import ports
from lab.testbed.agent.process import AgentProcess
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import TestbedSpec

SERVER = """
import socket
connection, address = socket.create_server(("", 7000)).accept()
print("port", address[1], flush=True)
while data := connection.recv(4096):
    connection.sendall(data)
"""

CLIENT = """
import socket, sys, time
for _ in range(500):
    try:
        connection = socket.create_connection(("server", 7000))
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
for number, line in enumerate(sys.stdin):
    connection.sendall(b"x")
    print("echo", number, connection.recv(1), flush=True)
"""


class Talk:
    """One connection that says something when told to."""

    def __init__(self, testbed: NetnsTestbed) -> None:
        server = testbed.server.spawn([sys.executable, "-c", SERVER])
        self.client: AgentProcess = testbed.client.spawn([sys.executable, "-c", CLIENT])
        port = int(server.wait_for_line("port", 10).text.split()[1])
        self.flow = FourTuple(Endpoint(testbed.client.ipv4, port), Endpoint(testbed.server.ipv4, 7000))
        self._said = 0

    def say(self) -> None:
        self.client.write("\n")
        self._said += 1

    def heard(self, timeout_s: float) -> bool:
        """Whether the answer to the last word came."""
        try:
            self.client.wait_for_line(f"echo {self._said - 1} ", timeout_s)
        except TimeoutError:
            return False
        return True


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def testbed(request: pytest.FixtureRequest) -> Iterator[NetnsTestbed]:
    with NetnsTestbed(TestbedSpec(firewall=request.param)) as up:
        assert up.router.firewall == request.param
        yield up


def until(condition: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_testbed_fulfils_the_port(testbed: NetnsTestbed) -> None:
    port: ports.Testbed = testbed  # mypy holds every signature against it

    assert [port.client.name, port.router.name, port.server.name] == ["client", "router", "server"]


def test_a_cut_drops_the_flow_and_a_heal_lets_it_go_on(testbed: NetnsTestbed) -> None:
    talk = Talk(testbed)
    talk.say()
    assert talk.heard(10)
    fault = Fault(talk.flow)
    testbed.router.prepare(fault)

    before = time.monotonic()
    receipt = testbed.router.cut(fault)
    after = time.monotonic()
    talk.say()
    until(lambda: testbed.router.matched(fault).forward >= 2)

    assert before <= receipt.began_at <= receipt.done_at <= after
    assert testbed.router.cut(fault) == receipt
    assert not talk.heard(0)
    testbed.router.heal(fault)
    assert talk.heard(10)


def test_a_drop_in_the_senders_own_output_is_done_in_the_sender(testbed: NetnsTestbed) -> None:
    talk = Talk(testbed)
    talk.say()
    assert talk.heard(10)
    fault = Fault(talk.flow, direction=Cut.BOTH, placement=Placement.OWN_OUTPUT)

    elsewhere = Fault(talk.flow)
    testbed.router.prepare(elsewhere)
    testbed.router.cut(fault)
    testbed.router.cut(elsewhere)
    talk.say()
    until(lambda: testbed.router.matched(fault).forward >= 1)

    # Nothing left the sender, so nothing came to the router's rules.
    assert testbed.router.matched(elsewhere) == Matched(0, 0)
    testbed.router.heal(elsewhere)
    testbed.router.heal(fault)
    assert talk.heard(10)


def test_a_capture_holds_both_sides_of_the_router(tmp_path: Path) -> None:
    # A testbed of its own: in a shared one, an acknowledgment of an earlier test may pass as the capture begins.
    with NetnsTestbed() as testbed:
        testbed.router.start_capture(tmp_path, filter_expression="tcp")
        talk = Talk(testbed)
        talk.say()
        assert talk.heard(10)

        summary = testbed.router.stop_capture()

        assert summary.left == tmp_path / "left.pcapng"
        assert summary.packets["left"] == summary.packets["right"] >= 7
        assert summary.dropped == {"left": 0, "right": 0}
        with pytest.raises(UsageError):
            testbed.router.stop_capture()


def test_a_watched_socket_is_followed_to_its_end(testbed: NetnsTestbed) -> None:
    talk = Talk(testbed)
    testbed.client.watch(talk.flow)
    testbed.client.watch(talk.flow)
    talk.say()
    assert talk.heard(10)
    assert testbed.client.track(talk.flow).samples[0].state is TcpState.ESTABLISHED
    assert testbed.client.track(talk.flow).gone_at is None

    with pytest.raises(UsageError, match="not watched in the server"):
        testbed.server.track(talk.flow)
    with pytest.raises(UsageError, match="no end of"):
        testbed.router.watch(talk.flow)


def test_sockets_and_counters_are_the_nodes_own(testbed: NetnsTestbed) -> None:
    talk = Talk(testbed)

    mine = [sample for sample in testbed.client.sockets() if sample.local == talk.flow.client]

    assert [sample.remote for sample in mine] == [talk.flow.server]
    assert testbed.client.counters()["TcpActiveOpens"] >= 1
    assert testbed.router.counters()["TcpActiveOpens"] == 0
    assert testbed.router.counters()["IpForwDatagrams"] >= 3


def test_an_unknown_firewall_is_the_authors_mistake_at_its_first_use() -> None:
    with NetnsTestbed(TestbedSpec(firewall="asbestos")) as testbed, pytest.raises(UsageError, match="asbestos"):
        testbed.router.prepare(Fault(FourTuple(Endpoint("192.0.2.10", 1), Endpoint("198.51.100.20", 2))))


def test_an_unknown_service_ends_as_one_that_died(testbed: NetnsTestbed) -> None:
    with pytest.raises(InvalidRun, match="The client's barrier ended unexpectedly"):
        testbed.client.service("barrier").call("rise")
