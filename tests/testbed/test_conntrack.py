"""What connection tracking says of real flows, in the places of the router's other parts."""

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

import lab.testbed.firewall_iptables
import lab.testbed.firewall_nftables  # noqa: F401 - loaded before the places are forked: nobody may not be able to read it
from lab.core.errors import EnvironmentNotReady
from lab.core.fault import Fault
from lab.core.flow import FourTuple
from lab.testbed.agent import kernel
from lab.testbed.conntrack import date_flows, passing_flows
from lab.testbed.firewall import Firewall, open_firewall
from lab.testbed.ports import PassingFlow, TrackState
from tests.testbed.isolated import isolated, until
from tests.testbed.places import Places, _sockets, receive, send, three_places

FAMILIES = [pytest.param(socket.AF_INET, id="ipv4"), pytest.param(socket.AF_INET6, id="ipv6")]


@pytest.fixture(scope="module", params=["iptables", "nftables", "nobody"])
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    nobody = request.param == "nobody"
    with three_places(as_nobody=nobody) as places:
        places.router.call(_open, "auto" if nobody else request.param)
        yield places


def listed(places: Places, flow: FourTuple) -> PassingFlow:
    (found,) = [one for one in places.router.call(passing_flows) if one.flow == flow]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_flow_is_listed_as_the_client_opened_it(places: Places, family: socket.AddressFamily) -> None:
    flow = places.connect(family)
    places.client.call(send, flow, b"hello")
    assert places.server.call(receive, flow, 5)
    one = listed(places, flow)

    assert (one.state, one.assured) == (TrackState.ESTABLISHED, True)
    assert one.packets is not None
    assert one.octets is not None
    assert one.packets[0] >= 3, "SYN, acknowledgment, data"
    assert one.packets[1] >= 2, "SYN/ACK, acknowledgment"
    assert one.octets[0] > one.octets[1] - 20 > 0


def test_flows_are_dated_in_the_order_in_which_they_began(places: Places) -> None:
    flows = [places.connect() for _ in range(5)]
    dates = [listed(places, flow).since or 0.0 for flow in flows]

    assert dates[0] > 1e9
    assert dates == sorted(dates)


def test_a_flow_that_was_closed_is_not_established_any_more(places: Places) -> None:
    flow = places.connect()
    places.client.call(_close, flow)

    assert listed(places, flow).state is not TrackState.ESTABLISHED


def test_a_flow_in_the_dark_is_still_listed_and_what_was_dropped_is_counted(places: Places) -> None:
    flow = places.connect()
    before = listed(places, flow)
    places.router.call(_cut, Fault(flow))
    places.client.call(send, flow, b"into the hole")

    def counted() -> bool:
        now = listed(places, flow)
        assert before.packets is not None
        assert now.packets is not None
        return now.packets[0] > before.packets[0]

    until(counted)
    assert listed(places, flow).state is TrackState.ESTABLISHED


def test_the_routers_own_connections_do_not_pass(places: Places) -> None:
    before = places.router.call(passing_flows)
    places.router.call(_connect_to_myself)
    places.router.call(_listen, 7100)
    places.client.call(_connect_to, "192.0.2.1", 7100)

    assert {one.flow for one in places.router.call(passing_flows)} == {one.flow for one in before}


def test_many_flows_come_in_several_messages(places: Places) -> None:
    flows = {places.connect() for _ in range(200)}

    assert flows <= {one.flow for one in places.router.call(passing_flows)}


def test_a_flow_whose_addresses_are_translated_is_listed_as_it_was_sent() -> None:
    with three_places() as places:
        places.router.call(_open, "iptables")
        places.router.call(_translate)
        places.server.call(_listen, 7000)
        port = places.client.call(_connect_to, "192.0.2.1", 7200)
        (one,) = places.router.call(passing_flows)

    assert str(one.flow) == f"192.0.2.2:{port} > 192.0.2.1:7200"


@isolated
def test_without_the_capability_it_is_said_what_is_missing() -> None:
    kernel.drop_capabilities()
    with pytest.raises(EnvironmentNotReady, match="CAP_NET_ADMIN"):
        passing_flows()


def test_nothing_passes_where_there_is_no_tracking() -> None:
    with three_places() as places:
        places.connect()

        assert places.router.call(passing_flows) == []


@isolated
def test_a_namespace_without_flows_lists_none() -> None:
    assert passing_flows() == []


# What runs in the places.

_firewalls: list[Firewall] = []
_kept: list[socket.socket] = []


def _open(name: str) -> None:
    _firewalls[:] = [open_firewall(name)]
    date_flows()


def _cut(fault: Fault) -> None:
    _firewalls[0].cut(fault)


def _close(flow: FourTuple) -> None:
    _sockets.pop(flow).close()


def _listen(port: int) -> None:
    _kept.append(socket.create_server(("", port)))


def _connect_to(address: str, port: int) -> int:
    _kept.append(socket.create_connection((address, port), timeout=10))
    return int(_kept[-1].getsockname()[1])


def _connect_to_myself() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    _kept.extend([listener, socket.create_connection(listener.getsockname())])


def _translate() -> None:
    rule = ["-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "7200", "-j", "DNAT", "--to", "198.51.100.2:7000"]
    # The lock's usual place is root's alone.
    subprocess.run(["iptables-legacy", *rule], check=True, env={**os.environ, "XTABLES_LOCKFILE": os.devnull})
