"""Names and addresses of the three nodes; the same on every testbed, since each has its own namespaces.

::

    client --- left --- router --- right --- server
    192.0.2.10       .1        .1         198.51.100.20
    2001:db8:1::10  ::1        ::1       2001:db8:2::20

Addresses are from the documentation ranges (RFC 5737, RFC 3849). A link has the same name at both of its ends.
"""

from dataclasses import dataclass
from typing import Final

from lab.testbed.names import CLIENT, LEFT, NODES, RIGHT, ROUTER, SERVER, Addresses

PREFIX_V4: Final = 24
PREFIX_V6: Final = 64


@dataclass(frozen=True, slots=True)
class Interface:
    """One end of a link."""

    node: str
    link: str
    """Name of the link, and of the interface."""

    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class Link:
    """A veth pair between an outer node and the router."""

    outer: Interface
    inner: Interface
    """The router's end, the gateway of the outer node."""


LINKS: Final = (
    Link(
        outer=Interface(CLIENT, LEFT, "192.0.2.10", "2001:db8:1::10"),
        inner=Interface(ROUTER, LEFT, "192.0.2.1", "2001:db8:1::1"),
    ),
    Link(
        outer=Interface(SERVER, RIGHT, "198.51.100.20", "2001:db8:2::20"),
        inner=Interface(ROUTER, RIGHT, "198.51.100.1", "2001:db8:2::1"),
    ),
)

IPV4: Final = {CLIENT: LINKS[0].outer.ipv4, ROUTER: LINKS[0].inner.ipv4, SERVER: LINKS[1].outer.ipv4}
"""The address that the other nodes know a node by; the router has a second one."""

IPV6: Final = {CLIENT: LINKS[0].outer.ipv6, ROUTER: LINKS[0].inner.ipv6, SERVER: LINKS[1].outer.ipv6}

ADDRESSES: Final = {name: Addresses(IPV4[name], IPV6[name]) for name in NODES}


def hosts_file(*, ipv6: bool) -> str:
    """Contents of /etc/hosts in the nodes: the three names in the chosen family, and localhost."""
    addresses = IPV6 if ipv6 else IPV4
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    return "\n".join([*lines, *(f"{addresses[name]} {name}" for name in NODES)]) + "\n"
