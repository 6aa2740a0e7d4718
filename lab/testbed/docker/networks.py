"""A testbed's two networks: ordinary bridges, since on ``internal`` ones the engine drops routed packets."""

import ipaddress
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.inner.seat import Nic

if TYPE_CHECKING:
    from docker.models.networks import Network

PROTECTS_SINCE = (1, 48)
"""API of engine 28.0, which drops packets to a container that come from another bridge than its own, unless told so."""

GATEWAY_MODE = "com.docker.network.bridge.gateway_mode_ipv"
"""Option of a network, the family at its end, that tells it so."""

_UNPROTECTED = "nat-unprotected"

_MASQUERADE = "com.docker.network.bridge.enable_ip_masquerade"
"""Option of a network whose packets leave under the host's address. Without it the engine has no rule that sees the
lab's packets, and removes the network sooner."""

BOTH_FAMILIES = "46"
"""Of the networks that ``make_link`` makes."""


@dataclass(frozen=True, slots=True)
class Link:
    """One network of a testbed."""

    network: "Network"
    subnets: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return str(self.network.name)

    @property
    def families(self) -> str:
        """46, 4 or 6."""
        return "".join(str(version) for version in sorted({subnet.version for subnet in self.subnets}))

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


def join_link(engine: Engine, name: str) -> Link:
    """A network that is somebody else's, to be left as it is.

    Raises:
        EnvironmentNotReady: it is gone.
    """
    with engine_errors(f"looking at the network {name}"):
        return _link(engine.client.networks.get(name))


def make_link(engine: Engine, name: str, labels: dict[str, str], *, leads_outside: bool = False) -> Link:
    """Make one network; the engine chooses its IPv4 subnet, the lab a random local one of IPv6.

    Args:
        engine: Where.
        name: Of the network.
        labels: The same.
        leads_outside: Have the host translate what leaves it.

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
            options={**unprotected(engine), **({} if leads_outside else {_MASQUERADE: "false"})},
            labels=labels,
        )
    return _link(network)


def unprotected(engine: Engine) -> dict[str, str]:
    """Options of a network whose containers are reached over another bridge too; none where they are anyway."""
    return {} if engine.api_version < PROTECTS_SINCE else {f"{GATEWAY_MODE}{family}": _UNPROTECTED for family in (4, 6)}


def _link(network: "Network") -> Link:
    pools = network.attrs["IPAM"]["Config"] or ()
    return Link(network, tuple(ipaddress.ip_network(pool["Subnet"], strict=False) for pool in pools))
