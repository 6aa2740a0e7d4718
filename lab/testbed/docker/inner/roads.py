"""A container's interfaces, names and routes, arranged from inside its network namespace.

The engine gives every container a default route to the host. In a client's or server's node it is replaced by one to
the router, which is then the only way to the other side; that is read back from the kernel. The router itself loses its
own; with an uplink the one of that network takes its place.
"""

import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.core.errors import EnvironmentNotReady
from lab.testbed.agent import ethtool
from lab.testbed.agent.rtnetlink import IFA_F_NODAD, IFA_F_TENTATIVE, RT_SCOPE_UNIVERSE, Rtnetlink, Way
from lab.testbed.docker.inner.seat import Nic, Seat

_HOSTS = Path("/etc/hosts")

_WAIT_S = 15.0
"""For an address that the engine is still giving; it takes milliseconds."""

_POLL_S = 0.005
_LOOPBACK = 1
"""Index of ``lo``: the first interface of every network namespace."""


def await_nics(networks: Sequence[str]) -> tuple[Nic, ...]:
    """The interfaces, once there is one per network and none lacks an address or has a tentative one.

    Args:
        networks: The families of each: 46, 4 or 6.

    Raises:
        EnvironmentNotReady: they did not come.
    """
    deadline = time.monotonic() + _WAIT_S
    with Rtnetlink() as kernel:
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
    with Rtnetlink() as kernel:
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
    with Rtnetlink() as kernel:
        _trust_addresses(kernel)
        if not seat.leads_outside:
            _lead_through(kernel, {nic.index: seat.gateways.get(nic.name, ()) for nic in nics})


def _trust_addresses(kernel: Rtnetlink) -> None:
    """Use link-local addresses at once: without one a router cannot ask for a neighbour, and connections wait."""
    for one in list(kernel.addresses()):
        if one.flags & IFA_F_TENTATIVE:
            # No detection: each link has two ends, whose addresses the engine chose.
            kernel.delete_address(one)
            kernel.add_address(replace(one, flags=IFA_F_NODAD))


def _lead_through(kernel: Rtnetlink, gateways: dict[int, tuple[str, ...]]) -> None:
    """Make these gateways the only ways out, and see that the kernel has no other."""
    wanted = {Way(index, gateway) for index, addresses in gateways.items() for gateway in addresses}
    for way in set(kernel.ways()) - wanted:
        kernel.delete_default(way)
    for way in wanted:
        kernel.replace_default(way)
    seen = set(kernel.ways())
    if seen != wanted:
        raise EnvironmentNotReady(
            f"The router was expected to be the only way out, {_text(wanted)}; the kernel has {_text(seen)}.",
            fix="report it with the output of docker version: nothing measured here could be trusted",
        )


def _text(ways: set[Way]) -> str:
    return ", ".join(sorted(f"{way.gateway} over interface {way.index}" for way in ways)) or "none"


def _nics(kernel: Rtnetlink) -> tuple[Nic, ...]:
    addresses: dict[int, list[str]] = {}
    for one in kernel.addresses():
        if one.scope == RT_SCOPE_UNIVERSE and one.index != _LOOPBACK:
            usable = not one.flags & IFA_F_TENTATIVE
            addresses.setdefault(one.index, []).extend([one.address] if usable else [])
    return tuple(Nic(socket.if_indextoname(index), index, tuple(all_)) for index, all_ in sorted(addresses.items()))


def _are_complete(nics: Sequence[Nic], networks: Sequence[str]) -> bool:
    """Whether the interfaces are those of the networks; an uplink's may have one family, the others have both."""
    has = sorted("".join(family for family, mark in (("4", "."), ("6", ":")) if _has(nic, mark)) for nic in nics)
    return has == sorted(networks) and not any("" in nic.addresses for nic in nics)


def _has(nic: Nic, mark: str) -> bool:
    return any(mark in address for address in nic.addresses)
