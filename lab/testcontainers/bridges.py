"""Networks of the user's that a ``Router`` is on."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from testcontainers.core.network import Network

from lab.core.errors import UsageError
from lab.testbed.docker import engine as engines
from lab.testbed.docker import networks
from lab.testbed.docker.labels import labels


def routed_network(**more: Any) -> Network:
    """A network that a ``Router`` can be on, on any engine; not created yet.

    Since 28 an engine drops packets that reach a container by way of another network, where its own has no option that
    allows them.

    Args:
        more: For ``docker network create``, as the SDK names it.
    """
    with engines.connect() as engine:
        wanted = networks.unprotected(engine)
    options: Mapping[str, str] = {**wanted, **more.pop("options", {})}
    marks = {**more.pop("labels", {}), **labels("", "network")}
    return Network(docker_network_kw={"options": options, "labels": marks, **more})


def subnets(engine: engines.Engine, network: Network) -> Sequence[str]:
    """A network's, IPv4 first.

    Raises:
        UsageError: it is not created, has no IPv4 subnet, or is an internal one.
    """
    if network._network is None:  # noqa: SLF001 - its id raises an assertion instead of saying
        raise UsageError("A network of the router is not created.", fix="with Network() as left: ...")
    found = engine.client.networks.get(network.id)
    if found.attrs["Internal"]:
        raise UsageError("On an internal network the engine drops routed packets.", fix="leave internal out")
    pools = [ipaddress.ip_network(pool["Subnet"]) for pool in found.attrs["IPAM"]["Config"]]
    ordered = [str(pool) for pool in sorted(pools, key=lambda pool: pool.version)]
    if not ordered or ":" in ordered[0]:
        raise UsageError("A network of the router has no IPv4 subnet.", fix="give it one beside its IPv6 subnet")
    return ordered
