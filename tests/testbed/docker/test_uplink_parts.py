"""What a way out asks of the container backend's parts: its network's families, its settings, its interface."""

import ipaddress
from typing import Any, cast

import pytest

from lab.testbed import translation
from lab.testbed.docker import settings
from lab.testbed.docker.inner import roads
from lab.testbed.docker.inner.seat import Nic
from lab.testbed.docker.networks import Link

BOTH, FOUR, SIX = ("192.0.2.2", "2001:db8::2"), ("203.0.113.2",), ("2001:db8:9::2",)


def nics(*addresses: tuple[str, ...]) -> tuple[Nic, ...]:
    return tuple(Nic(f"eth{number}", number + 2, each) for number, each in enumerate(addresses))


@pytest.mark.parametrize(
    ("addresses", "networks", "complete"),
    [
        ((BOTH, BOTH), ("46", "46"), True),
        ((BOTH, BOTH, FOUR), ("46", "46", "4"), True),
        ((BOTH, FOUR, BOTH), ("46", "46", "4"), True),
        ((BOTH, SIX), ("46", "6"), True),
        ((BOTH,), ("46", "46"), False),
        ((BOTH, FOUR), ("46", "46"), False),
        ((BOTH, ()), ("46", "4"), False),
        ((BOTH, ("203.0.113.2", "")), ("46", "4"), False),
    ],
)
def test_a_node_waits_for_the_families_that_each_network_has(
    addresses: tuple[tuple[str, ...], ...], networks: tuple[str, ...], complete: bool
) -> None:
    assert roads._are_complete(nics(*addresses), networks) is complete


def test_a_networks_families_are_its_subnets() -> None:
    four, six = ipaddress.ip_network("203.0.113.0/24"), ipaddress.ip_network("2001:db8::/64")
    link = cast("Any", Link)

    assert [link(None, pools).families for pools in ((six, four), (four,), (six,))] == ["46", "4", "6"]


def test_only_a_router_that_leads_outside_keeps_its_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "sysctls", lambda: {"net.netfilter.kept": "1"})

    assert "net.netfilter.kept" not in settings.at_creation("router", {})
    assert settings.at_creation("router", {}, leads_outside=True)["net.netfilter.kept"] == "1"
    wanted = settings.at_creation("router", {"net.netfilter.kept": "2"}, leads_outside=True)
    assert wanted["net.netfilter.kept"] == "2", "the user's word comes last"
