"""How a router in a container gets to a server outside of its testbed, and what would stand in between unseen.

Only the kernel may be in between: it forwards and translates packets, and the far end's TCP talks to the client's. A
program that carries connections on (a user-mode network stack, ``docker-proxy``) ends the far one itself and goes on
acknowledging for a peer that is dead.
"""

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.core.errors import EnvironmentNotReady, Unsupported, UsageError
from lab.core.uplink import Uplink
from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.networks import GATEWAY_MODE, PROTECTS_SINCE
from lab.testbed.interfaces import is_own

_TRANSLATES_IPV6_SINCE = (1, 46)
"""API of engine 27.0, which gives bridge networks a translation of IPv6 by default (ip6tables)."""

_BRIDGE_RULES = {
    4: Path("/proc/sys/net/bridge/bridge-nf-call-iptables"),
    6: Path("/proc/sys/net/bridge/bridge-nf-call-ip6tables"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """Which network leads to the server."""

    network: str | None
    """Name of a bridge network that is there already, with the server on it; None for one that the lab makes."""


def find_way(engine: Engine, uplink: Uplink) -> Way:
    """The way to a server outside.

    Raises:
        Unsupported: something in between would end the connection itself, or drop its packets.
        UsageError: the address is this machine's own, and a container's port is published there.
        EnvironmentNotReady: no route leads there.
    """
    own = is_own(uplink.address)
    with engine_errors("listing the networks"):
        # An address of this machine's on a bridge is the engine's own there, and no container's.
        network = None if own else network_of(uplink, engine.client.api.networks())
    if network is not None:
        _refuse_protected(engine, uplink, network)
        return Way(str(network["Name"]))
    if engine.is_rootless:
        raise Unsupported(
            "A rootless engine reaches the outside through a user-mode network stack (slirp4netns, pasta), which would "
            f"end the connection to {uplink} itself and go on acknowledging: the far end would never see a dead peer.",
            fix="use an engine that runs as root, or a server in a container on one of this engine's bridge networks",
        )
    _require_route(uplink)
    if uplink.ipv6 and not own and engine.api_version < _TRANSLATES_IPV6_SINCE:
        raise Unsupported(
            f"Docker {engine.version} does not translate IPv6: answers from {uplink} would not find back.",
            fix="use IPv4, or Docker 27 or newer",
        )
    if own:
        with engine_errors("listing the containers"):
            _refuse_published(uplink, engine.client.api.containers())
    return Way(None)


def network_of(uplink: Uplink, networks: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The bridge network that a server's address is on, None where it is on none.

    Args:
        uplink: The server.
        networks: As the engine lists them.
    """
    address = ipaddress.ip_address(uplink.address)
    for network in networks:
        pools = (network.get("IPAM") or {}).get("Config") or ()
        subnets = [ipaddress.ip_network(pool["Subnet"], strict=False) for pool in pools if pool.get("Subnet")]
        if network.get("Driver") == "bridge" and any(address in subnet for subnet in subnets):
            if any(pool.get("Gateway", "").partition("/")[0] == uplink.address for pool in pools):
                return None  # This machine itself.
            return network
    return None


def _refuse_protected(engine: Engine, uplink: Uplink, network: Mapping[str, Any]) -> None:
    """Where bridges ask the rules of IP, these see the client's packets to the server on its own bridge first."""
    family = 6 if uplink.ipv6 else 4
    mode = (network.get("Options") or {}).get(f"{GATEWAY_MODE}{family}", "nat")
    if engine.api_version >= PROTECTS_SINCE and mode == "nat" and _bridges_ask(family):
        raise Unsupported(
            f"Docker {engine.version} drops packets to {uplink} that come over another bridge than that of "
            f"{network['Name']}, and this machine's bridges ask its rules (br_netfilter).",
            fix=f"make that network with -o {GATEWAY_MODE}{family}=nat-unprotected",
        )


def _bridges_ask(family: int) -> bool:
    """Whether bridged packets go through the rules of IP; not without the module."""
    try:
        return _BRIDGE_RULES[family].read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def _require_route(uplink: Uplink) -> None:
    """Ask this machine's kernel; a datagram socket that connects sends nothing."""
    family = socket.AF_INET6 if uplink.ipv6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((uplink.address, uplink.port))
    except OSError as error:
        raise EnvironmentNotReady(
            f"This machine has no way to {uplink}: {error.strerror}.", fix="give an address that it reaches"
        ) from error


def _refuse_published(uplink: Uplink, containers: Iterable[Mapping[str, Any]]) -> None:
    for container in containers:
        for port in container.get("Ports") or ():
            if port.get("PublicPort") == uplink.port and port.get("Type") == "tcp":
                name = (container.get("Names") or ["?"])[0].lstrip("/")
                raise UsageError(
                    f"{uplink} is a port that Docker publishes for the container {name}. From another container it is "
                    "reached through docker-proxy, which would end the connection itself and go on acknowledging.",
                    fix=f"give the container's own address and its port {port.get('PrivatePort')}",
                )
