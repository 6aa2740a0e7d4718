"""A container's interfaces, names and routes, arranged from inside its network namespace.

The engine gives every container a default route to the host. In a client's or server's node it is replaced by one to
the router, which is then the only way to the other side; that is read back from the kernel. The router itself loses its
own; with an uplink the one of that network takes its place.
"""

import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent import ethtool
from lab.testbed.docker.seat import Nic, Seat

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_HOSTS = Path("/etc/hosts")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)

_WAIT_S = 15.0
"""For an address that the engine is still giving; it takes milliseconds."""

_POLL_S = 0.005
_LOOPBACK = 1
"""Index of ``lo``: the first interface of every network namespace."""

_TENTATIVE = 0x40
"""IFA_F_TENTATIVE: duplicate address detection is still waiting for an objection."""

_NODAD = 0x02
"""IFA_F_NODAD: no such detection; each link has two ends, whose addresses the engine chose."""

_GLOBAL = 0
"""RT_SCOPE_UNIVERSE."""

_MAIN_TABLE = 254


def await_nics(networks: Sequence[str]) -> tuple[Nic, ...]:
    """The interfaces, once there is one per network and none lacks an address or has a tentative one.

    Args:
        networks: The families of each: 46, 4 or 6.

    Raises:
        EnvironmentNotReady: they did not come.
    """
    deadline = time.monotonic() + _WAIT_S
    with _kernel() as kernel:
        while not _are_complete(nics := _nics(kernel), networks):
            if time.monotonic() > deadline:
                seen = ", ".join(f"{nic.name} {' '.join(nic.addresses)}" for nic in nics) or "none"
                raise EnvironmentNotReady(
                    f"{len(networks)} network interfaces with addresses were expected; there are: {seen}."
                )
            time.sleep(_POLL_S)
    return nics


def read_nics() -> tuple[Nic, ...]:
    """The interfaces as they are."""
    with _kernel() as kernel:
        return _nics(kernel)


def arrange(seat: Seat, nics: tuple[Nic, ...]) -> None:
    """Names, offloads and routes as the seat says.

    Raises:
        EnvironmentNotReady: the kernel has another way out than the router.
    """
    with _HOSTS.open("a", encoding="ascii") as file:
        file.writelines(f"{address}\t{name}\n" for name, address in seat.hosts.items())
    for nic in nics:
        if seat.forwards_merged:
            ethtool.switch_offloads_off(nic.name, (ethtool.Offload.GRO,))
        elif not seat.offloads:
            ethtool.switch_offloads_off(nic.name)
        ethtool.await_running(nic.name, _WAIT_S)
    with _kernel() as kernel:
        _trust_addresses(kernel)
        if not seat.leads_outside:
            _lead_through(kernel, {nic.index: seat.gateways.get(nic.name, ()) for nic in nics})


def _trust_addresses(kernel: "IPRoute") -> None:
    """Use link-local addresses at once: without one a router cannot ask for a neighbour, and connections wait."""
    for message in list(kernel.get_addr(family=socket.AF_INET6)):
        if message.get_attr("IFA_FLAGS", 0) & _TENTATIVE:
            same = {
                "index": message["index"],
                "address": message.get_attr("IFA_ADDRESS"),
                "prefixlen": message["prefixlen"],
            }
            kernel.addr("del", **same)
            kernel.addr("add", flags=_NODAD, scope=message["scope"], **same)


def _lead_through(kernel: "IPRoute", gateways: dict[int, tuple[str, ...]]) -> None:
    """Make these gateways the only ways out, and see that the kernel has no other."""
    for index, gateway, family in list(_ways(kernel)):
        if gateway not in gateways.get(index, ()):
            kernel.route("del", family=family, dst="default", gateway=gateway, oif=index)
    for index, addresses in gateways.items():
        for address in addresses:
            kernel.route("replace", dst="default", gateway=address, oif=index)
    wanted = {(index, address) for index, addresses in gateways.items() for address in addresses}
    seen = {(index, gateway) for index, gateway, _ in _ways(kernel)}
    if seen != wanted:
        raise EnvironmentNotReady(
            f"The router was expected to be the only way out, {sorted(wanted)}; the kernel has {sorted(seen)}.",
            fix="report it with the output of docker version: nothing measured here could be trusted",
        )


def _ways(kernel: "IPRoute") -> Iterator[tuple[int, str, socket.AddressFamily]]:
    """Interface, gateway and family of every route of the main table that has a gateway."""
    for family in _FAMILIES:
        for route in kernel.get_routes(family=family, table=_MAIN_TABLE):
            gateway = route.get_attr("RTA_GATEWAY")
            if gateway is not None:
                yield route.get_attr("RTA_OIF"), gateway, family


def _kernel() -> "IPRoute":
    from pyroute2 import IPRoute  # an eighth of a second, and the module is also read by the caller

    return IPRoute()


def _nics(kernel: "IPRoute") -> tuple[Nic, ...]:
    addresses: dict[int, list[str]] = {}
    for message in kernel.get_addr():
        usable = not message.get_attr("IFA_FLAGS", 0) & _TENTATIVE
        if message["scope"] == _GLOBAL and message["index"] != _LOOPBACK:
            address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
            addresses.setdefault(message["index"], []).extend([address] if usable else [])
    return tuple(Nic(socket.if_indextoname(index), index, tuple(all_)) for index, all_ in sorted(addresses.items()))


def _are_complete(nics: Sequence[Nic], networks: Sequence[str]) -> bool:
    """Whether the interfaces are those of the networks; an uplink's may have one family, the others have both."""
    has = sorted("".join(family for family, mark in (("4", "."), ("6", ":")) if _has(nic, mark)) for nic in nics)
    return has == sorted(networks) and not any("" in nic.addresses for nic in nics)


def _has(nic: Nic, mark: str) -> bool:
    return any(mark in address for address in nic.addresses)
