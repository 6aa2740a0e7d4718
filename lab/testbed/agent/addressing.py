"""A node's address changes, as when a phone leaves one network for another; each agent does its node's part of it."""

import ipaddress
import socket
from pathlib import Path

from lab.core.errors import InvalidRun
from lab.testbed.agent import ethtool
from lab.testbed.agent.rtnetlink import IFA_F_NODAD, InterfaceAddress, Rtnetlink

_HOSTS = Path("/etc/hosts")


class Addressing:
    """What a node's agent answers about its addresses."""

    def holds_address(self, address: str) -> bool:
        """Whether an interface of this node has an address."""
        with Rtnetlink() as kernel:
            return any(one.address == address for one in kernel.addresses())

    def hardware_address(self, address: str) -> bytes:
        """The link-layer address of the interface that has an address.

        Raises:
            InvalidRun: no interface has it.
        """
        with Rtnetlink() as kernel:
            return ethtool.hardware_address(socket.if_indextoname(_holder(kernel, address).index))

    def free_address(self, address: str, number: int) -> str:
        """Another address of the same subnet, from its far end, where nobody else gives any.

        Args:
            address: Of this node.
            number: 1 for the first that is asked for, and so on.

        Raises:
            InvalidRun: no interface has the address.
        """
        with Rtnetlink() as kernel:
            held = _holder(kernel, address)
        network = ipaddress.ip_network(f"{address}/{held.prefixlen}", strict=False)
        # RFC 2526 keeps the last 128 of an IPv6 subnet for anycast; of an IPv4 subnet the last one is for broadcast.
        return str(network.broadcast_address - (number + (128 if network.version == 6 else 0)))

    def replace_address(self, old: str, new: str) -> None:
        """Take an address from its interface and put another one in its place; routes by gateways stay.

        What is connected from the old one stays connected, as far as its kernel knows: nothing is told, sent or closed.

        Raises:
            InvalidRun: no interface has the old one, or another way out is left than before.
        """
        with Rtnetlink() as kernel:
            held = _holder(kernel, old)
            ways = set(kernel.ways())
            kernel.delete_address(held)
            kernel.add_address(InterfaceAddress(held.index, new, held.prefixlen, held.scope, IFA_F_NODAD))
            # With its last address an interface has lost its routes.
            for way in ways - set(kernel.ways()):
                kernel.replace_default(way)
            has = {one.address for one in kernel.addresses()}
            if old in has or new not in has or set(kernel.ways()) != ways:
                raise InvalidRun(f"{old} was to become {new}, with the same ways out; the kernel has {sorted(has)}.")

    def part_with(self, address: str, hardware: bytes) -> None:
        """Go on sending what is for an address to where it was, and pass on nothing that comes from it.

        Raises:
            InvalidRun: no interface of this node is on its subnet.
        """
        with Rtnetlink() as kernel:
            kernel.discard_from(address)
            for one in kernel.addresses():
                if ipaddress.ip_address(address) in ipaddress.ip_network(
                    f"{one.address}/{one.prefixlen}", strict=False
                ):
                    kernel.keep_neighbour(one.index, address, hardware)
                    return
        raise InvalidRun(f"{address} is on no subnet of this node.")

    def rename(self, old: str, new: str) -> None:
        """Let the names of an address resolve to another one."""
        lines = _HOSTS.read_text(encoding="utf-8").splitlines(keepends=True)
        # The file is a mount: it can be written to, and not replaced.
        _HOSTS.write_text("".join(_renamed(line, old, new) for line in lines), encoding="utf-8")


def _holder(kernel: Rtnetlink, address: str) -> InterfaceAddress:
    held = next((one for one in kernel.addresses() if one.address == address), None)
    if held is None:
        raise InvalidRun(f"No interface of this node has the address {address}.")
    return held


def _renamed(line: str, old: str, new: str) -> str:
    address, space, names = line.partition(" " if " " in line else "\t")
    return f"{new}{space}{names}" if address == old else line
