"""The TCP flows that pass this process's network namespace, as its connection tracking has them (``ctnetlink``).

A plain netlink socket and ``struct``, for the reasons that ``lab.testbed.sockets`` gives: a controller asks several
times a second.

Connection tracking sees a connection from the first packet after its hooks were registered, which a ``Firewall`` does
when it is opened. It keeps an entry long after a silent end: what is listed may be dead at both ends.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.core.errors import EnvironmentNotReady, Unsupported
from lab.core.flow import Endpoint, FourTuple
from lab.testbed.interfaces import is_own
from lab.testbed.ports import PassingFlow, TrackState

_NETLINK_NETFILTER = 12
"""``linux/netlink.h``; the socket module has no name for it."""

_GET = 1 << 8 | 1
"""``NFNL_SUBSYS_CTNETLINK`` and ``IPCTNL_MSG_CT_GET`` (linux/netfilter/nfnetlink.h, nfnetlink_conntrack.h)."""

_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_NLMSGHDR = struct.Struct("=IHHII")
_NFGENMSG = struct.Struct("=BBH")
_ATTRIBUTE = struct.Struct("=HH")
_KIND = 0x3FFF
"""Of an attribute's type: without the marks for nested and for network order (``NLA_TYPE_MASK``)."""

# linux/netfilter/nfnetlink_conntrack.h
_TUPLE_ORIGINAL, _TUPLE_REPLY, _STATUS, _PROTOCOL_INFO = 1, 2, 3, 4
_COUNTERS_ORIGINAL, _COUNTERS_REPLY, _TIMESTAMP = 9, 10, 20
_TUPLE_IP, _TUPLE_PROTOCOL = 1, 2
_V4_SOURCE, _V4_DESTINATION, _V6_SOURCE, _V6_DESTINATION = 1, 2, 3, 4
_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3
_INFO_TCP, _TCP_STATE = 1, 1
_PACKETS, _BYTES = 1, 2
_START = 1

_ASSURED, _SOURCE_TRANSLATED, _DESTINATION_TRANSLATED = 1 << 2, 1 << 4, 1 << 5
"""``enum ip_conntrack_status``."""

_LONGEST_ANSWER = struct.pack("@ll", 5, 0)
"""``struct timeval``: a kernel that answers later than that is an error, not a wait."""

_DATE_FLOWS = Path("/proc/sys/net/netfilter/nf_conntrack_timestamp")

_Attributes = dict[int, bytes]


def date_flows() -> None:
    """Have connections dated from now on, where the namespace lets itself be told; without, ``since`` is None."""
    with contextlib.suppress(OSError):
        _DATE_FLOWS.write_bytes(b"1")


def passing_flows() -> Sequence[PassingFlow]:
    """Every TCP flow that is tracked and has an end elsewhere on both sides; those of the router itself are left out.

    The ends are the original ones: as the client sent its first packet, before any translation of addresses.

    Raises:
        EnvironmentNotReady: no CAP_NET_ADMIN in this network namespace.
        Unsupported: this kernel does not tell.
    """
    local: dict[str, bool] = {}
    return [flow for flow, translated in _tracked() if translated or not _ends_here(flow.flow, local)]


def _tracked() -> Iterator[tuple[PassingFlow, bool]]:
    """Every tracked TCP flow, and whether one of its addresses is translated."""
    for attributes in _dump():
        flow = _four_tuple(_nested(attributes[_TUPLE_ORIGINAL]))
        if flow is not None:
            status = int.from_bytes(attributes.get(_STATUS, b""), "big")
            translated = bool(status & (_SOURCE_TRANSLATED | _DESTINATION_TRANSLATED))
            yield _passing(flow, attributes, assured=bool(status & _ASSURED)), translated


def _passing(flow: FourTuple, attributes: _Attributes, *, assured: bool) -> PassingFlow:
    info = _nested(_nested(attributes.get(_PROTOCOL_INFO, b"")).get(_INFO_TCP, b""))
    forward, return_ = (_counters(attributes.get(kind)) for kind in (_COUNTERS_ORIGINAL, _COUNTERS_REPLY))
    started = _nested(attributes.get(_TIMESTAMP, b"")).get(_START)
    return PassingFlow(
        flow=flow,
        state=_state(info.get(_TCP_STATE, b"\0")[0]),
        assured=assured,
        packets=None if forward is None or return_ is None else (forward[0], return_[0]),
        octets=None if forward is None or return_ is None else (forward[1], return_[1]),
        since=int.from_bytes(started, "big") / 1e9 if started else None,
        translated=_translated(flow, attributes),
    )


def _translated(flow: FourTuple, attributes: _Attributes) -> FourTuple | None:
    """What comes back goes to the name that the far end knows."""
    reply = _four_tuple(_nested(attributes[_TUPLE_REPLY])) if _TUPLE_REPLY in attributes else None
    there = None if reply is None else FourTuple(client=reply.server, server=reply.client)
    return None if there == flow else there


def _state(number: int) -> TrackState:
    states = tuple(TrackState)
    return states[number] if number < len(states) else TrackState.NONE


def _four_tuple(original: _Attributes) -> FourTuple | None:
    """The flow of a tuple; None where it is not TCP's."""
    protocol, addresses = _nested(original[_TUPLE_PROTOCOL]), _nested(original[_TUPLE_IP])
    if protocol.get(_NUMBER) != bytes([socket.IPPROTO_TCP]):
        return None
    if _V4_SOURCE in addresses:
        source, destination, family = addresses[_V4_SOURCE], addresses[_V4_DESTINATION], socket.AF_INET
    else:
        source, destination, family = addresses[_V6_SOURCE], addresses[_V6_DESTINATION], socket.AF_INET6
    return FourTuple(
        Endpoint(socket.inet_ntop(family, source), int.from_bytes(protocol[_SOURCE_PORT], "big")),
        Endpoint(socket.inet_ntop(family, destination), int.from_bytes(protocol[_DESTINATION_PORT], "big")),
    )


def _counters(data: bytes | None) -> tuple[int, int] | None:
    """Packets and octets, where the namespace counts them (``nf_conntrack_acct``)."""
    if not data:
        return None
    counted = _nested(data)
    return int.from_bytes(counted[_PACKETS], "big"), int.from_bytes(counted[_BYTES], "big")


def _ends_here(flow: FourTuple, known: dict[str, bool]) -> bool:
    """Whether an end is an address of this namespace: then the flow does not pass, it ends here."""
    for end in flow:
        if end.address not in known:
            known[end.address] = is_own(end.address)
    return any(known[end.address] for end in flow)


def _dump() -> Iterator[_Attributes]:
    """The attributes of every entry, both families."""
    try:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER)
    except OSError as error:
        raise Unsupported(f"This kernel has no netfilter netlink: {error.strerror}.") from error
    with opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _LONGEST_ANSWER)
        body = _NFGENMSG.pack(socket.AF_UNSPEC, 0, 0)
        opened.send(_NLMSGHDR.pack(_NLMSGHDR.size + len(body), _GET, _REQUEST | _DUMP, 1, 0) + body)
        while True:
            for kind, message in _messages(opened.recv(1 << 18)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise _refusal(-struct.unpack_from("=i", message)[0])
                yield _nested(message[_NFGENMSG.size :])


def _refusal(number: int) -> Exception:
    if number == 1:
        return EnvironmentNotReady(
            "The flows that pass can be listed with CAP_NET_ADMIN in this network namespace only.",
            fix="run as root, or allow unprivileged user namespaces",
        )
    return Unsupported(f"This kernel does not list tracked connections (error {number}).")


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _NLMSGHDR.size <= len(data):
        length, kind, *_ = _NLMSGHDR.unpack_from(data, at)
        yield kind, data[at + _NLMSGHDR.size : at + length]
        at += (length + 3) & ~3


def _nested(data: bytes) -> _Attributes:
    found: _Attributes = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _KIND] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found
