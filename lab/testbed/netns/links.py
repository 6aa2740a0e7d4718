"""Builds the two links between three network namespaces: interfaces, addresses, routes, sysctls.

The rtnetlink requests are the same for every testbed but for a few numbers. pyroute2 makes them once per fork server
(21 requests through its blocking interface take 25 ms, and the library itself 20 MB); each testbed replays the octets
with its own numbers in 3 ms.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import LabError
from lab.testbed.agent import ethtool, kernel, sysctl
from lab.testbed.names import NODES, ROUTER
from lab.testbed.netns import rtnetlink
from lab.testbed.netns.layout import LINKS, PREFIX_V4, PREFIX_V6, Interface

if TYPE_CHECKING:
    from pyroute2 import IPBatch

Batches = Mapping[str, bytes]
"""Recorded requests per step: ``pairs``, then one for each node."""

_PAIRS = "pairs"
_LOOPBACK = 1
"""Index of ``lo``: the first interface of every network namespace."""

_IFA_F_NODAD = 0x02

_CARRIER_TIMEOUT_S = 10.0
"""The kernel's link watch may be a second late, and more on a machine under load."""

_SOCKET_BUCKETS = 4096
"""Of a node's own table of connections; tcp_max_tw_buckets is half of it, tcp_max_syn_backlog 128."""

_UNKNOWN = 0x7E57BED0
"""Stands in the recorded requests for numbers that each testbed has its own of; no other field has such a value."""

_NAMESPACE_OF = {link.outer.node: _UNKNOWN + place for place, link in enumerate(LINKS)}
"""In place of the descriptor of an outer node's namespace."""

_INDEX_OF = {link.inner.link: _UNKNOWN + 8 + place for place, link in enumerate(LINKS)}
"""In place of an interface's index."""

_EVERY_NODE = {
    "net.ipv4.ip_unprivileged_port_start": "0",
    # A host that forwards (every host with a Docker engine does) hands that on; the router alone shall.
    "net.ipv4.ip_forward": "0",
    # Hosts may filter by return path; a namespace inherits that.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.accept_redirects": "0",
    "net.ipv4.conf.default.accept_redirects": "0",
}

_EVERY_NODE_V6 = {
    "net.ipv6.conf.all.forwarding": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    # An address is usable at once, and nothing but the experiment speaks.
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.dad_transmits": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.autoconf": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    "net.ipv6.conf.default.accept_redirects": "0",
}

_FORWARDING = {
    "net.ipv4.ip_forward": "1",
    # The kernel takes the larger of "all" and the interface's own, which starts as "default".
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}

_FORWARDING_V6 = {"net.ipv6.conf.all.forwarding": "1"}


def has_ipv6() -> bool:
    """Whether this kernel speaks IPv6 at all."""
    return Path("/proc/sys/net/ipv6").is_dir()


def record() -> Batches:
    """Have pyroute2 make the requests; nothing is changed in this process's namespace."""
    from pyroute2 import IPBatch  # 0.3 s, and only the process that records needs it

    batches = {}
    with IPBatch() as batch:
        for link in LINKS:
            peer = {"ifname": link.outer.link, "net_ns_fd": _NAMESPACE_OF[link.outer.node]}
            batch.link("add", kind="veth", ifname=link.inner.link, peer=peer)
        batches[_PAIRS] = _take(batch)
        for node in NODES:
            batch.link("set", index=_LOOPBACK, state="up")
            for interface in _interfaces(node):
                _configure(batch, interface)
            for gateway in _gateways(node):
                batch.route("add", dst="default", gateway=gateway)
            batches[node] = _take(batch)
    return batches


def enter_origin() -> None:
    """Move this process into a network namespace of which those that it makes get small socket tables of their own.

    Otherwise they share the host's, through all of which the kernel walks for every list of sockets: 2 ms, not 0.1.
    """
    kernel.unshare(kernel.CLONE_NEWNET)
    # Linux 6.1; without it everything works, only slower. What else forbids it, the nodes' own settings will tell.
    with contextlib.suppress(LabError):
        sysctl.write("net.ipv4.tcp_child_ehash_entries", str(_SOCKET_BUCKETS))


def make_namespaces() -> dict[str, int]:
    """A new network namespace per node, as descriptors; this process ends up in the last one."""
    namespaces = {}
    origin = _own_namespace()
    for name in NODES:
        # The new one's socket table is as the one says in which it is made.
        kernel.setns(origin, kernel.CLONE_NEWNET)
        kernel.unshare(kernel.CLONE_NEWNET)
        namespaces[name] = _own_namespace()
    os.close(origin)
    return namespaces


def build(
    namespaces: Mapping[str, int], batches: Batches, sysctls: Mapping[str, Mapping[str, str]], *, keep_offloads: bool
) -> None:
    """Connect client, router and server; afterwards the router is the only path.

    Args:
        namespaces: Descriptor of each node's network namespace. This process is moved between them.
        batches: What ``record`` made.
        sysctls: The user's own settings per node, applied last.
        keep_offloads: Leave TSO, GSO and GRO on.
    """
    for name in NODES:
        kernel.setns(namespaces[name], kernel.CLONE_NEWNET)
        _write(_defaults(name))
    kernel.setns(namespaces[ROUTER], kernel.CLONE_NEWNET)
    rtnetlink.replay(_filled(batches[_PAIRS], {_NAMESPACE_OF[node]: namespaces[node] for node in _NAMESPACE_OF}))
    # The router first: an outer node's routes need a gateway that answers.
    for name in sorted(NODES, key=lambda node: node != ROUTER):
        kernel.setns(namespaces[name], kernel.CLONE_NEWNET)
        _connect(name, batches[name], keep_offloads=keep_offloads)
        _write(sysctls.get(name, {}))
    for name in NODES:
        kernel.setns(namespaces[name], kernel.CLONE_NEWNET)
        for interface in _interfaces(name):
            ethtool.await_running(interface.link, _CARRIER_TIMEOUT_S)


def _connect(node: str, batch: bytes, *, keep_offloads: bool) -> None:
    interfaces = _interfaces(node)
    if not keep_offloads:
        # While they are down, so that no packet is ever merged.
        for interface in interfaces:
            ethtool.switch_offloads_off(interface.link)
    rtnetlink.replay(_filled(batch, {_INDEX_OF[one.link]: socket.if_nametoindex(one.link) for one in interfaces}))


def _own_namespace() -> int:
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _interfaces(node: str) -> list[Interface]:
    return [end for link in LINKS for end in (link.inner, link.outer) if end.node == node]


def _gateways(node: str) -> list[str]:
    gateways = [link.inner for link in LINKS if link.outer.node == node]
    return [one.ipv4 for one in gateways] + [one.ipv6 for one in gateways if has_ipv6()]


def _defaults(node: str) -> dict[str, str]:
    settings = _EVERY_NODE | (_FORWARDING if node == ROUTER else {})
    if has_ipv6():
        settings |= _EVERY_NODE_V6 | (_FORWARDING_V6 if node == ROUTER else {})
    return settings


def _configure(batch: "IPBatch", interface: Interface) -> None:
    index = _INDEX_OF[interface.link]
    batch.addr("add", index=index, address=interface.ipv4, prefixlen=PREFIX_V4)
    if has_ipv6():
        batch.addr("add", index=index, address=interface.ipv6, prefixlen=PREFIX_V6, flags=_IFA_F_NODAD)
    batch.link("set", index=index, state="up")


def _take(batch: "IPBatch") -> bytes:
    recorded = bytes(batch.batch)
    batch.reset()
    return recorded


def _filled(batch: bytes, numbers: Mapping[int, int]) -> bytes:
    for placeholder, number in numbers.items():
        batch = batch.replace(struct.pack("=I", placeholder), struct.pack("=I", number))
    return batch


def _write(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        sysctl.write(name, value)
