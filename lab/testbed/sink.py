"""A hole inside one network namespace that the sender's stack knows nothing of.

A drop in the sender's own OUTPUT is told to its stack. So what shall vanish gets a mark, a policy rule sends the mark
to a table of its own, and the only route there leads to a device that frees what it is given: for the stack the segment
was sent, and a capture on the device shows it. The other half of the hole, a drop in INPUT, is the firewall's alone.

Everything made here is known again without its maker: the device by its name and group, rules and routes by their
protocol number. Nothing else in the namespace is changed, and of the settings under /proc/sys only the device's own.
"""

import contextlib
import errno
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from lab.core.errors import EnvironmentNotReady, LabError, Unsupported, UsageError
from lab.testbed.agent.ethtool import await_running, switch_offloads_off

DEVICE: Final = "lab-sink"
DESCRIPTION: Final = "what was sent into the hole"
"""For its capture."""

_PEER: Final = "lab-sink-peer"

_GROUP: Final = 7474
"""Interface group (``ip link show group``): a device of somebody else may have the name."""

PROTOCOL: Final = 176
"""Who made a rule or a route; none of the numbers that linux/rtnetlink.h has given away."""

KINDS: Final = ("dummy", "ifb", "veth")
"""Devices that free what they are given, the plainest first: an ifb drops what was not redirected to it, and what comes
out of a veth pair is for a hardware address that nobody here has."""

_MTU = 65535
"""Most that an IP packet can hold: a smaller one would be told to the sender, and change its path MTU."""

_FIRST_TABLE, _LAST_TABLE = 1000, 2000
_HIGHEST_BIT = 30
_MAIN_TABLE, _LOCAL_TABLE = 254, 255
_ALL_BITS = 0xFFFFFFFF
_SCOPE_LINK = 253
_IFF_UP, _IFF_NOARP = 0x1, 0x80
_ADDR_GEN_NONE = 1
"""``IN6_ADDR_GEN_MODE_NONE`` (linux/if_link.h): no address, so nothing is ever sent from the device itself."""

_IPV6_SWITCH = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"
"""An engine may switch IPv6 off for every device that it does not make itself."""

_UP_TIMEOUT_S = 5.0
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_NO_FAMILY = frozenset(
    {errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EACCES, errno.ENODEV, errno.EINVAL, errno.EPROTONOSUPPORT}
)
"""What kernels say to a route of a family that they, or the device, do not have."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing of a sink that is still there."""

    kind: str
    """rule, route or device."""

    name: str
    """As a person would look for it."""


class Sink:
    """The device, the table and the policy rule of this process's network namespace; a context manager.

    Args:
        kinds: Which devices may be tried, in this order.

    Raises:
        UsageError: the namespace has a sink already, a living one or what a killed process left.
        Unsupported: the kernel has no such device or no policy routing, or a foreign rule comes before all others.
        EnvironmentNotReady: no CAP_NET_ADMIN here.
    """

    def __init__(self, kinds: tuple[str, ...] = KINDS) -> None:
        self.families: list[socket.AddressFamily] = []
        """Those whose packets the sink takes."""

        self._undo = contextlib.ExitStack()
        with _route_socket() as netlink, contextlib.ExitStack() as undo:
            if found := _leftovers(netlink):
                raise UsageError(
                    f"A namespace without a hole of the lab's was expected; it has {found[0].kind} {found[0].name}.",
                    fix="end the other `lab attach`; `lab clean` removes what a killed one left",
                )
            # In one call, whatever was made until it failed.
            undo.callback(remove_leftovers)
            self.kind = _make_device(netlink, kinds)
            """Which device it is."""

            self.mark = _free_mark(netlink)
            """The bit that leads into it."""

            for family in _FAMILIES:
                if _make_way(netlink, family, self.mark):
                    self.families.append(family)
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Remove everything; what is marked from now on goes its ordinary way. Idempotent."""
        self._undo.close()

    def __enter__(self) -> Self:
        """The sink itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()


def read_mark(*, ipv6: bool) -> int:
    """The bit that leads into this namespace's sink, as its policy rule has it.

    Raises:
        UsageError: there is no sink.
        Unsupported: there is one, but not for this family.
    """
    with _route_socket() as netlink:
        marks = {family: _own_marks(netlink, family) for family in _FAMILIES}
    if not any(marks.values()):
        raise UsageError("A sink was expected in this namespace; there is none.", fix="open one first")
    found = marks[socket.AF_INET6 if ipv6 else socket.AF_INET]
    if not found:
        raise Unsupported(f"IPv{6 if ipv6 else 4} is switched off for new devices in this namespace.")
    return found[0]


def find_leftovers() -> list[Leftover]:
    """What there is of a sink in this namespace, whoever made it and whether or not he lives."""
    with _route_socket() as netlink:
        return _leftovers(netlink)


def remove_leftovers() -> list[Leftover]:
    """Remove all of a sink; idempotent. What was there.

    The rules first, so that nothing is led to a table that is empty by then.
    """
    with _route_socket() as netlink:
        found = _leftovers(netlink)
        for family in _FAMILIES:
            for rule in _own_rules(netlink, family):
                _gone(lambda rule=rule: netlink.rule("del", **rule))  # type: ignore[misc]  # bound in this turn
        # Its routes go with the device.
        for index, _ in _own_devices(netlink):
            _gone(lambda index=index: netlink.link("del", index=index))  # type: ignore[misc]  # bound in this turn
    return found


def _make_device(netlink: Any, kinds: tuple[str, ...]) -> str:
    """Make the first device that this kernel has, and switch it on; its kind."""
    from pyroute2.netlink.exceptions import NetlinkError

    for kind in kinds:
        peer = {"peer": {"ifname": _PEER}} if kind == "veth" else {}
        try:
            netlink.link("add", ifname=DEVICE, kind=kind, group=_GROUP, **peer)
        except NetlinkError as error:
            if error.code in (errno.EOPNOTSUPP, errno.ENODEV):
                continue
            raise _refused(f"make {DEVICE}", error) from error
        names = [DEVICE, *([_PEER] if peer else [])]
        for name in names:
            _switch_on(netlink, name)
        switch_offloads_off(DEVICE)
        if peer:
            # The others have no carrier that could come late.
            await_running(DEVICE, _UP_TIMEOUT_S)
        for name in names:
            _leave_multicast(netlink, name)
        return kind
    raise Unsupported(
        f"This kernel has none of the devices {', '.join(kinds)}.",
        fix=f"sudo modprobe {kinds[0]}",
    )


def _switch_on(netlink: Any, name: str) -> None:
    index = netlink.link_lookup(ifname=name)[0]
    with contextlib.suppress(OSError):  # no IPv6, or /proc/sys may not be written here: the cut of such a flow says so
        Path(_IPV6_SWITCH.format(name)).write_text("0", encoding="ascii")
    silent = {"attrs": [("AF_INET6", {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _ADDR_GEN_NONE)]})]}
    netlink.link("set", index=index, mtu=_MTU, flags=_IFF_NOARP, change=_IFF_NOARP)
    with contextlib.suppress(Exception):  # a kernel without IPv6 knows no such mode
        netlink.link("set", index=index, IFLA_AF_SPEC=silent)
    netlink.link("set", index=index, state="up")


def _leave_multicast(netlink: Any, name: str) -> None:
    """Remove the route that the kernel gives every device: nobody's multicast shall end here."""
    index = netlink.link_lookup(ifname=name)[0]
    with contextlib.suppress(Exception):  # none without IPv6
        netlink.route("del", family=socket.AF_INET6, dst="ff00::/8", oif=index, table=_LOCAL_TABLE, type="multicast")


def _make_way(netlink: Any, family: socket.AddressFamily, mark: int) -> bool:
    """A table whose one route leads to the device, and the rule that leads marked packets there.

    Returns:
        Whether this family can be had.
    """
    from pyroute2.netlink.exceptions import NetlinkError

    table = _free_table(netlink)
    index = netlink.link_lookup(ifname=DEVICE)[0]
    scope = {"scope": _SCOPE_LINK} if family == socket.AF_INET else {}
    try:
        netlink.route("add", family=family, dst="default", oif=index, table=table, proto=PROTOCOL, **scope)
    except NetlinkError as error:
        if family == socket.AF_INET6 and error.code in _NO_FAMILY:
            return False
        raise _refused("make a route to the sink", error) from error
    priority = _first_priority(netlink, family)
    try:
        netlink.rule("add", family=family, fwmark=mark, fwmask=mark, table=table, priority=priority, protocol=PROTOCOL)
    except NetlinkError as error:
        raise _refused("make a policy rule", error) from error
    return True


def _first_priority(netlink: Any, family: socket.AddressFamily) -> int:
    """Before every rule but the one of local addresses: what others lead elsewhere shall not escape."""
    others = [
        _attributes(rule).get("FRA_PRIORITY", 0) for rule in netlink.get_rules(family=family) if not _is_local(rule)
    ]
    priority: int = min(others, default=32766) - 1
    if priority < 1:
        raise Unsupported("A policy rule of the namespace comes before all others, so no way leads past it.")
    return priority


def _is_local(rule: Any) -> bool:
    attributes = _attributes(rule)
    return attributes.get("FRA_TABLE") == _LOCAL_TABLE and attributes.get("FRA_PRIORITY", 0) == 0


def _free_mark(netlink: Any) -> int:
    """The highest bit that no policy rule asks for; a rule that asks for all bits names those of its value."""
    used = 0
    for family in _FAMILIES:
        for rule in netlink.get_rules(family=family):
            attributes = _attributes(rule)
            mask = attributes.get("FRA_FWMASK", 0)
            used |= attributes.get("FRA_FWMARK", 0) if mask == _ALL_BITS else mask
    for bit in range(_HIGHEST_BIT, -1, -1):
        if not used & 1 << bit:
            return 1 << bit
    raise Unsupported("The namespace's policy rules use every bit of the mark.")


def _free_table(netlink: Any) -> int:
    """A number that neither routes nor rules of any family have."""
    used = {_attributes(rule).get("FRA_TABLE") for family in _FAMILIES for rule in netlink.get_rules(family=family)}
    used |= {
        _attributes(route).get("RTA_TABLE", _MAIN_TABLE)
        for family in _FAMILIES
        for route in netlink.get_routes(family=family)
        if route["proto"] != PROTOCOL
    }
    free = (number for number in range(_FIRST_TABLE, _LAST_TABLE) if number not in used)
    number = next(free, None)
    if number is None:
        raise Unsupported(f"Every routing table from {_FIRST_TABLE} to {_LAST_TABLE - 1} is in use.")
    return number


def _leftovers(netlink: Any) -> list[Leftover]:
    rules = [
        Leftover("rule", f"fwmark {rule['fwmark']:#x}") for family in _FAMILIES for rule in _own_rules(netlink, family)
    ]
    return [*rules, *(Leftover("device", name) for _, name in _own_devices(netlink))]


def _own_rules(netlink: Any, family: socket.AddressFamily) -> Iterator[dict[str, Any]]:
    """The lab's policy rules, as the words that remove them."""
    for rule in netlink.get_rules(family=family):
        attributes = _attributes(rule)
        if attributes.get("FRA_PROTOCOL") == PROTOCOL:
            yield {
                "family": family,
                "fwmark": attributes["FRA_FWMARK"],
                "fwmask": attributes["FRA_FWMASK"],
                "table": attributes["FRA_TABLE"],
                "priority": attributes["FRA_PRIORITY"],
                "protocol": PROTOCOL,
            }


def _own_marks(netlink: Any, family: socket.AddressFamily) -> list[int]:
    return [rule["fwmark"] for rule in _own_rules(netlink, family)]


def _own_devices(netlink: Any) -> Iterator[tuple[int, str]]:
    """Index and name of the lab's device; the other end of a pair goes with it."""
    for index in netlink.link_lookup(ifname=DEVICE):
        if _attributes(netlink.get_links(index)[0]).get("IFLA_GROUP") == _GROUP:
            yield index, DEVICE


def _attributes(message: Any) -> dict[str, Any]:
    return dict(message["attrs"])


def _gone(remove: Callable[[], object]) -> None:
    """Remove something that another process may have removed meanwhile."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        remove()
    except NetlinkError as error:
        if error.code not in (errno.ENOENT, errno.ENODEV, errno.ESRCH):
            raise


def _refused(what: str, error: Any) -> LabError:
    if error.code in (errno.EPERM, errno.EACCES):
        return EnvironmentNotReady(
            f"CAP_NET_ADMIN in this network namespace is needed to {what}.", fix="run with --cap-add NET_ADMIN"
        )
    if error.code == errno.EEXIST:
        return UsageError(f"The name {DEVICE} was expected to be free; a device here has it.")
    return Unsupported(f"The kernel did not {what}: {error}.")


def _route_socket() -> Any:
    # Imported where it is used: it costs 0.2 s and most namespaces never have a sink.
    from pyroute2 import IPRoute

    return IPRoute()
