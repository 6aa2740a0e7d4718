"""Builds the two links between three network namespaces: interfaces, addresses, routes, sysctls."""

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lab.testbed.netns import kernel, offloads, sysctl
from lab.testbed.netns.layout import LINKS, NODES, PREFIX_V4, PREFIX_V6, ROUTER, Interface, Link

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_LOOPBACK = 1
"""Index of ``lo``: the first interface of every network namespace."""

_IFA_F_NODAD = 0x02

_EVERY_NODE = {
    "net.ipv4.ip_unprivileged_port_start": "0",
    # An address is usable at once, and nothing but the experiment speaks.
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.dad_transmits": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.autoconf": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    # Hosts may filter by return path; a namespace inherits that.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.accept_redirects": "0",
    "net.ipv4.conf.default.accept_redirects": "0",
    "net.ipv6.conf.default.accept_redirects": "0",
}

_FORWARDING = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    # The kernel takes the larger of "all" and the interface's own, which starts as "default".
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}


def make_namespaces() -> dict[str, int]:
    """A new network namespace per node, as descriptors; this process ends up in the last one."""
    namespaces = {}
    for name in NODES:
        kernel.unshare(kernel.CLONE_NEWNET)
        namespaces[name] = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    return namespaces


def build(namespaces: Mapping[str, int], sysctls: Mapping[str, Mapping[str, str]], *, keep_offloads: bool) -> None:
    """Connect client, router and server; afterwards the router is the only path.

    Args:
        namespaces: Descriptor of each node's network namespace. This process is moved between them.
        sysctls: The user's own settings per node, applied last.
        keep_offloads: Leave TSO, GSO and GRO on.
    """
    from pyroute2 import IPRoute  # 0.3 s, and only the keeper needs it

    for name in NODES:
        kernel.setns(namespaces[name], kernel.CLONE_NEWNET)
        _write(_EVERY_NODE | (_FORWARDING if name == ROUTER else {}))
    kernel.setns(namespaces[ROUTER], kernel.CLONE_NEWNET)
    with IPRoute() as route:
        for link in LINKS:
            _add_pair(route, link, namespaces[link.outer.node])
        for link in LINKS:
            _configure(route, link.inner, keep_offloads=keep_offloads)
        route.link("set", index=_LOOPBACK, state="up")
    for link in LINKS:
        kernel.setns(namespaces[link.outer.node], kernel.CLONE_NEWNET)
        with IPRoute() as route:
            route.link("set", index=_LOOPBACK, state="up")
            _configure(route, link.outer, keep_offloads=keep_offloads)
            for gateway in (link.inner.ipv4, link.inner.ipv6):
                route.route("add", dst="default", gateway=gateway)
    for name, settings in sysctls.items():
        kernel.setns(namespaces[name], kernel.CLONE_NEWNET)
        _write(settings)


def _add_pair(route: "IPRoute", link: Link, outer_namespace: int) -> None:
    peer = {"ifname": link.outer.link, "net_ns_fd": outer_namespace}
    route.link("add", kind="veth", ifname=link.inner.link, peer=peer)


def _configure(route: "IPRoute", interface: Interface, *, keep_offloads: bool) -> None:
    """Addresses, offloads, up; offloads first, so that no packet is ever merged."""
    if not keep_offloads:
        offloads.switch_off(interface.link)
    index = socket.if_nametoindex(interface.link)
    route.addr("add", index=index, address=interface.ipv4, prefixlen=PREFIX_V4)
    route.addr("add", index=index, address=interface.ipv6, prefixlen=PREFIX_V6, flags=_IFA_F_NODAD)
    route.link("set", index=index, state="up")


def _write(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        sysctl.write(name, value)
