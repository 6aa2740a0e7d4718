import ast
import sys

import pytest

from lab.core.errors import Unsupported
from lab.testbed.agent.nodes import AgentNode
from lab.testbed.names import NODES
from lab.testbed.netns import NetnsTestbed, links, rtnetlink
from lab.testbed.netns.layout import LINKS, hosts_file
from lab.testbed.ports import TestbedSpec

OFFLOADS = """
from lab.testbed.agent import ethtool
print({name: {one.name: on for one, on in ethtool.read_offloads(name).items()} for name in %r})
"""


def look(node: AgentNode, code: str) -> object:
    program = node.spawn([sys.executable, "-c", code])
    assert program.wait(10) == 0, program.lines
    return ast.literal_eval(program.lines[0].text)


@pytest.mark.parametrize(("keep", "expected"), [(False, False), (True, True)])
def test_segmentation_offloads_are_off_unless_kept(keep: bool, expected: bool) -> None:
    with NetnsTestbed(TestbedSpec(offloads=keep)) as testbed:
        seen = {
            "client": look(testbed.client, OFFLOADS % (["left"],)),
            "router": look(testbed.router, OFFLOADS % (["left", "right"],)),
            "server": look(testbed.server, OFFLOADS % (["right"],)),
        }

    for interfaces in seen.values():
        assert isinstance(interfaces, dict)
        for found in interfaces.values():
            assert (found["TSO"], found["GSO"]) == (expected, expected)
            if not keep:
                assert not found["GRO"]


def test_ipv6_addresses_are_usable_at_once() -> None:
    code = "print([line.split()[-1::-1] for line in open('/proc/net/if_inet6')])"
    with NetnsTestbed() as testbed:
        addresses = look(testbed.client, code)

    # Name, flags (0x40 is tentative), scope, prefix length, index, address.
    assert isinstance(addresses, list)
    ours = [address for address in addresses if address[0] == "left"]
    assert len(ours) == 2
    assert all(not int(flags, 16) & 0x40 for _, flags, *_ in ours)
    assert "20010db8000100000000000000000010" in {address[-1] for address in ours}


def test_the_router_forwards_without_redirects(testbed: NetnsTestbed) -> None:
    settings = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv6.conf.left.forwarding"]
    assert [testbed.router.read_sysctl(name) for name in settings] == ["1", "1", "1"]
    redirects = [f"net.ipv4.conf.{name}.send_redirects" for name in ("all", "left", "right")]
    assert [testbed.router.read_sysctl(name) for name in redirects] == ["0", "0", "0"]
    assert testbed.client.read_sysctl("net.ipv4.ip_forward") == "0"


def test_recording_asks_for_an_acknowledgment_of_every_request() -> None:
    batches = links.record()

    assert set(batches) == {"pairs", *NODES}
    # Two pairs; loopback; per interface two addresses and up; per outer node two routes.
    assert [rtnetlink._count(batches[name]) for name in ("pairs", "client", "router", "server")] == [2, 6, 7, 6]


def test_a_request_that_the_kernel_refuses_is_an_error(testbed: NetnsTestbed) -> None:
    code = """
from lab.testbed.netns import links, rtnetlink
try:
    rtnetlink.replay(links.record()["router"])
except OSError as error:
    print([str(error)])
"""
    # The interfaces of the recorded requests have no such index here.
    answer = look(testbed.client, code)

    assert isinstance(answer, list)
    assert "rtnetlink request" in answer[0]


def test_hosts_of_both_families_name_the_same_nodes() -> None:
    assert hosts_file(ipv6=False).splitlines()[2:] == [
        "192.0.2.10 client",
        "192.0.2.1 router",
        "198.51.100.20 server",
    ]
    assert hosts_file(ipv6=True).splitlines()[2:] == [
        f"{LINKS[0].outer.ipv6} client",
        f"{LINKS[0].inner.ipv6} router",
        f"{LINKS[1].outer.ipv6} server",
    ]


@pytest.mark.parametrize("node", ["client", "router", "server"])
def test_a_node_has_a_socket_table_of_its_own_that_is_quick_to_list(testbed: NetnsTestbed, node: str) -> None:
    try:
        entries = getattr(testbed, node).read_sysctl("net.ipv4.tcp_ehash_entries")
    except Unsupported:
        pytest.skip("kernels before 6.1 have one table for the whole machine")

    # A shared table shows as a negative number.
    assert 0 < int(entries) <= 4096
