"""The router's way out: what the far end sees, what the router tells of it, and that the hole holds all the same."""

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lab.core.fault import Fault, Matched
from lab.core.flow import Endpoint, FourTuple
from lab.core.socket import TcpState
from lab.testbed import translation
from lab.testbed.conntrack import passing_flows
from lab.testbed.firewall import Firewall, open_firewall
from lab.testbed.sockets import list_sockets
from lab.testbed.translation import Translation, open_translation
from tests.testbed.places import PORT, RIGHT, Places, receive, send, three_places

ROUTER = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8:2::1"}
FAMILIES = (socket.AF_INET, socket.AF_INET6)
WATCHED_S = 0.6
"""Two or three copies of a lost segment."""


@pytest.fixture
def places() -> Iterator[Places]:
    with three_places() as places:
        places.router.call(_translate)
        yield places


@pytest.mark.parametrize("family", FAMILIES, ids=["ipv4", "ipv6"])
def test_the_far_end_knows_the_router_and_the_router_tells_who_that_is(
    places: Places, family: socket.AddressFamily
) -> None:
    flow = places.connect(family)
    told = places.router.call(_translations)

    assert places.server.call(_peers) == {ROUTER[family]}
    assert told == {flow: FourTuple(Endpoint(ROUTER[family], flow.client.port), flow.server)}


@pytest.mark.parametrize("family", FAMILIES, ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("firewall", ["iptables", "nftables"])
def test_the_hole_knows_the_client_alone_and_holds_both_ways(
    places: Places, family: socket.AddressFamily, firewall: str
) -> None:
    flow = places.connect(family)
    other = places.connect(family)
    places.router.call(_cut, firewall, Fault(flow))
    for place, far in ((places.client, places.server), (places.server, places.client)):
        place.call(send, flow, b"lost")
        place.call(send, other, b"here")
        assert far.call(receive, other, 4) == b"here"
    matched = places.router.call(_matched, Fault(flow))

    assert matched.forward > 0
    assert matched.return_ > 0
    for place in (places.client, places.server):
        with pytest.raises(TimeoutError):
            place.call(receive, flow, 1, 0.1)


def test_what_comes_back_for_a_forgotten_flow_is_dropped_unanswered(places: Places) -> None:
    flow = places.connect()
    places.router.call(_forget)
    places.server.call(send, flow, b"are you there?")
    time.sleep(WATCHED_S)

    assert places.router.call(_translations) == {}
    assert places.server.call(_states) == {TcpState.ESTABLISHED}, "a RST of the router's would have ended it"


def test_without_the_rules_nothing_is_translated(places: Places) -> None:
    places.router.call(_take_back)
    places.router.call(_take_back)
    places.connect()

    assert places.server.call(_peers) == {"192.0.2.2"}
    assert places.router.call(_translations) == {}


def test_the_settings_that_keep_a_translation_are_those_that_the_kernel_has() -> None:
    found = translation.sysctls()

    assert found.items() <= translation.SYSCTLS.items()
    assert found.keys() == {name for name in translation.SYSCTLS if Path("/proc/sys", *name.split(".")).exists()}


_kept: dict[str, Translation | Firewall] = {}


def _translate() -> None:
    _kept["translation"] = open_translation(RIGHT, list(ROUTER.values()))


def _translations() -> dict[FourTuple, FourTuple]:
    return {one.flow: one.translated for one in passing_flows() if one.translated is not None}


def _take_back() -> None:
    _kept["translation"].close()


def _cut(firewall: str, fault: Fault) -> None:
    opened = _kept["firewall"] = open_firewall(firewall)
    opened.cut(fault)


def _matched(fault: Fault) -> Matched:
    firewall = _kept["firewall"]
    assert isinstance(firewall, Firewall)
    return firewall.matched(fault)


def _forget() -> None:
    from pyroute2 import NFCTSocket

    with NFCTSocket() as tracking:
        tracking.flush()


def _connections() -> Mapping[str, TcpState]:
    return {
        s.remote.address: s.state for s in list_sockets() if s.local.port == PORT and s.state is not TcpState.LISTEN
    }


def _peers() -> set[str]:
    return set(_connections())


def _states() -> set[TcpState]:
    return set(_connections().values())
