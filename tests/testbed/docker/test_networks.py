"""What a testbed's networks are made with."""

from types import SimpleNamespace
from typing import Any

import pytest

from lab.testbed.docker.engine import Engine
from lab.testbed.docker.networks import BOTH_FAMILIES, Link, make_link

MASQUERADE = "com.docker.network.bridge.enable_ip_masquerade"


def made(*, leads_outside: bool) -> tuple[Link, dict[str, Any]]:
    """A link, and what the engine was asked for; it adds a subnet of IPv4."""
    asked: dict[str, Any] = {}

    def create(name: str, **wanted: Any) -> object:
        asked.update(wanted)
        pools = [*wanted["ipam"]["Config"], {"Subnet": "192.0.2.0/24"}]
        return SimpleNamespace(name=name, attrs={"IPAM": {"Config": pools}})

    client: Any = SimpleNamespace(networks=SimpleNamespace(create=create))
    engine = Engine(client, "unix:///x.sock", "28.0.0", (1, 48), {})
    return make_link(engine, "lab-x-left", {}, leads_outside=leads_outside), asked


@pytest.mark.parametrize(("leads_outside", "masquerade"), [(False, "false"), (True, None)])
def test_only_an_uplinks_network_is_masqueraded(leads_outside: bool, masquerade: str | None) -> None:
    _, asked = made(leads_outside=leads_outside)

    assert asked["options"].get(MASQUERADE) == masquerade
    assert asked["options"]["com.docker.network.bridge.gateway_mode_ipv4"] == "nat-unprotected"


def test_a_made_network_has_the_families_that_its_nodes_are_told_beforehand() -> None:
    link, _ = made(leads_outside=False)

    assert link.families == BOTH_FAMILIES
