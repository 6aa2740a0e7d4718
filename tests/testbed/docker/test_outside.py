"""Which network leads to a server outside, and what is refused because something would end its connections unseen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import pytest

from lab.core.errors import EnvironmentNotReady, Unsupported, UsageError
from lab.core.uplink import Uplink
from lab.testbed.docker import outside
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.outside import Way, find_way, network_of

PROJECT = {
    "Name": "project_default",
    "Driver": "bridge",
    "IPAM": {"Config": [{"Subnet": "172.31.0.0/16", "Gateway": "172.31.0.1"}, {"Subnet": "fd00:1::/64"}]},
}
OTHERS = (
    {"Name": "none", "Driver": "null", "IPAM": {"Config": None}},
    {"Name": "lan", "Driver": "macvlan", "IPAM": {"Config": [{"Subnet": "203.0.113.0/24"}]}},
    {"Name": "odd", "Driver": "bridge", "IPAM": None},
)


def to(address: str, port: int = 443) -> Uplink:
    return Uplink(address, port, address)


@dataclass
class FakeEngine:
    """An engine as far as a way out asks it."""

    listed: Sequence[Mapping[str, Any]] = (*OTHERS, PROJECT)
    running: Sequence[Mapping[str, Any]] = ()
    is_rootless: bool = False
    api_version: tuple[int, int] = (1, 47)
    version: str = "27.3.1"
    client: Any = None

    def networks(self) -> Sequence[Mapping[str, Any]]:
        return self.listed

    def containers(self) -> Sequence[Mapping[str, Any]]:
        return self.running


def made(**changes: Any) -> Engine:
    fake = FakeEngine(**changes)
    fake.client = type("Client", (), {"api": fake})()
    return cast("Engine", fake)


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a way to everywhere and no address of its own."""
    monkeypatch.setattr(outside, "_require_route", lambda _: None)
    monkeypatch.setattr(outside, "is_own", lambda _: False)
    monkeypatch.setattr(outside, "_bridges_ask", lambda _: True)


@pytest.mark.parametrize("address", ["172.31.0.7", "fd00:1::7"])
def test_a_container_on_a_bridge_of_this_engine_is_reached_on_its_own_network(address: str) -> None:
    assert find_way(made(), to(address)) == Way("project_default")
    assert find_way(made(is_rootless=True), to(address)) == Way("project_default"), "no user-mode stack lies between"


NEW = {"api_version": (1, 51), "version": "28.5.2"}


@pytest.mark.parametrize(
    ("options", "engine", "asks", "open_"),
    [
        ({}, NEW, True, False),
        ({}, NEW, False, True),
        ({}, {}, True, True),
        ({"com.docker.network.bridge.gateway_mode_ipv4": "nat-unprotected"}, NEW, True, True),
        ({"com.docker.network.bridge.gateway_mode_ipv4": "routed"}, NEW, True, True),
        ({"com.docker.network.bridge.gateway_mode_ipv6": "nat-unprotected"}, NEW, True, False),
    ],
)
def test_a_network_whose_engine_drops_what_comes_over_another_bridge_is_refused(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], engine: dict[str, Any], asks: bool, open_: bool
) -> None:
    monkeypatch.setattr(outside, "_bridges_ask", lambda _: asks)
    made_so = made(listed=[{**PROJECT, "Options": options}], **engine)

    if open_:
        assert find_way(made_so, to("172.31.0.7")) == Way("project_default")
        return
    with pytest.raises(Unsupported, match=r"project_default.*br_netfilter.*gateway_mode_ipv4=nat-unprotected"):
        find_way(made_so, to("172.31.0.7"))


@pytest.mark.parametrize("address", ["203.0.113.9", "172.31.0.1", "192.0.2.1"])
def test_everything_else_is_reached_through_a_network_of_the_labs_own(address: str) -> None:
    assert find_way(made(), to(address)) == Way(None)


def test_a_rootless_engine_has_a_user_mode_stack_in_the_way() -> None:
    with pytest.raises(Unsupported, match=r"slirp4netns, pasta.*go on acknowledging"):
        find_way(made(is_rootless=True), to("203.0.113.9"))


def test_an_engine_that_does_not_translate_ipv6_has_no_way_back() -> None:
    assert find_way(made(), to("2001:db8::9")) == Way(None)
    with pytest.raises(Unsupported, match=r"Docker 20\.10\.24 does not translate IPv6.*Docker 27"):
        find_way(made(api_version=(1, 41), version="20.10.24"), to("2001:db8::9"))


def test_this_machine_on_a_bridge_is_no_container_of_that_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "is_own", lambda address: address == "172.31.0.254")

    assert find_way(made(), to("172.31.0.254")) == Way(None)


PUBLISHED = {"Names": ["/shop"], "Ports": [{"Type": "tcp", "PublicPort": 8080, "PrivatePort": 80}, {"Type": "udp"}]}


def test_a_published_port_has_a_proxy_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "is_own", lambda _: True)

    with pytest.raises(UsageError, match=r"publishes for the container shop.*docker-proxy.*its port 80"):
        find_way(made(running=[PUBLISHED]), to("192.0.2.1", 8080))
    assert find_way(made(running=[PUBLISHED]), to("192.0.2.1", 8081)) == Way(None)


def test_the_port_of_another_machine_may_be_the_same() -> None:
    assert find_way(made(running=[PUBLISHED]), to("192.0.2.1", 8080)) == Way(None)


def test_no_route_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(outside, "is_own", lambda _: False)

    class Unreachable:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def connect(self, _: object) -> None:
            raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("lab.testbed.docker.outside.socket.socket", Unreachable)
    with pytest.raises(EnvironmentNotReady, match=r"no way to 203\.0\.113\.9:443: Network is unreachable"):
        find_way(made(), to("203.0.113.9"))


def test_a_network_without_subnets_is_passed_over() -> None:
    assert network_of(to("203.0.113.9"), OTHERS) is None
