"""A testbed's two networks: ordinary bridges, since on ``internal`` ones the engine drops routed packets."""

import ipaddress
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.seat import Nic

if TYPE_CHECKING:
    from docker.models.networks import Network

_UNPROTECTED_SINCE = (1, 48)
"""API of engine 28.0, which drops packets to a container that come from another bridge than its own, unless told so."""

_UNPROTECTED = {
    "com.docker.network.bridge.gateway_mode_ipv4": "nat-unprotected",
    "com.docker.network.bridge.gateway_mode_ipv6": "nat-unprotected",
}


@dataclass(frozen=True, slots=True)
class Link:
    """One network of a testbed."""

    network: "Network"
    subnets: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return str(self.network.name)

    def address(self, nics: tuple[Nic, ...], version: int) -> tuple[str, str]:
        """Interface and address on this network; the address empty where there is none of that version."""
        for nic in nics:
            for text in nic.addresses:
                address = ipaddress.ip_address(text)
                if any(address in subnet for subnet in self.subnets if subnet.version == version):
                    return nic.name, text
        return "", ""

    def addresses(self, nics: tuple[Nic, ...]) -> tuple[str, ...]:
        """All addresses on this network."""
        return tuple(address for version in (4, 6) if (address := self.address(nics, version)[1]))


def options(engine: Engine) -> dict[str, str]:
    """What a bridge network needs so that a router on it is heard."""
    return dict(_UNPROTECTED) if engine.api_version >= _UNPROTECTED_SINCE else {}


def make_link(engine: Engine, name: str, labels: dict[str, str]) -> Link:
    """Make one network; the engine chooses its IPv4 subnet, the lab a random local one of IPv6.

    Raises:
        EnvironmentNotReady: the engine has no subnet left.
    """
    from docker.types import IPAMConfig, IPAMPool

    unique_local = ipaddress.IPv6Network(((0xFD << 120) | (secrets.randbits(56) << 64), 64))
    with engine_errors("making a network"):
        network = engine.client.networks.create(
            name,
            driver="bridge",
            enable_ipv6=True,
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(unique_local))]),
            options=options(engine),
            labels=labels,
        )
    pools = network.attrs["IPAM"]["Config"]
    return Link(network, tuple(ipaddress.ip_network(pool["Subnet"]) for pool in pools))
