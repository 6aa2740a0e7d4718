"""Addresses, routes and neighbours of the network namespace that this process is in, by rtnetlink(7).

By hand, because every start of a node's container would pay for the library's import: a quarter of a second.
"""

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

IFA_F_NODAD: Final = 0x02
"""No duplicate address detection (linux/if_addr.h)."""

IFA_F_TENTATIVE: Final = 0x40
"""Duplicate address detection is still waiting for an objection."""

RT_SCOPE_UNIVERSE: Final = 0

_RT_SCOPE_NOWHERE = 255
"""In a request to delete: whatever scope it has."""

_MAIN_TABLE = 254
_RTN_UNICAST, _RTPROT_STATIC = 1, 4

_NLMSGHDR = struct.Struct("=IHHII")
_IFADDRMSG = struct.Struct("=BBBBi")
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTATTR = struct.Struct("=HH")

_REQUEST, _ACK, _DUMP, _REPLACE, _CREATE = 0x1, 0x4, 0x300, 0x100, 0x400
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NEWADDR, _DELADDR, _GETADDR = 20, 21, 22
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_RTA_OIF, _RTA_GATEWAY, _RTA_TABLE = 4, 5, 15
_NEWNEIGH = 28
_NDMSG = struct.Struct("=BxxxiHBB")
_NUD_PERMANENT = 0x80
_NDA_DST, _NDA_LLADDR = 1, 2
_NEWRULE = 32
_FIB_RULE_HDR = struct.Struct("=BBBBBBBBI")
_FR_ACT_BLACKHOLE = 6
_FRA_SRC, _FRA_PRIORITY = 2, 6
_FIRST_PRIORITY = 1
"""Before the rules that look into any table but that of local addresses, which is 0."""

_ANSWER_BYTES = 1 << 16
_TIMEOUT_S = 10.0
_VERSIONS = {socket.AF_INET: 4, socket.AF_INET6: 6}


@dataclass(frozen=True, slots=True)
class InterfaceAddress:
    """One address of an interface."""

    index: int
    """Of the interface."""

    address: str
    prefixlen: int
    scope: int
    flags: int
    """``IFA_F_...``."""


@dataclass(frozen=True, slots=True)
class Way:
    """One route of the main table that has a gateway."""

    index: int
    """Of the interface that it leads over."""

    gateway: str


class Rtnetlink:
    """A netlink socket; a context manager that closes it. Errors of the kernel are ``OSError``."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.settimeout(_TIMEOUT_S)
        self._sequence = 0

    def __enter__(self) -> Self:
        """The socket itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self._socket.close()

    def addresses(self) -> Iterator[InterfaceAddress]:
        """Every address of both families."""
        for payload in self._ask(_GETADDR, _DUMP, _IFADDRMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
            family, prefixlen, flags, scope, index = _IFADDRMSG.unpack_from(payload)
            if family in _VERSIONS:
                has = dict(_attributes(payload[_IFADDRMSG.size :]))
                # The far end's stands in the other one on a point-to-point link.
                address = has.get(_IFA_LOCAL) or has[_IFA_ADDRESS]
                flags = _number(has[_IFA_FLAGS]) if _IFA_FLAGS in has else flags
                yield InterfaceAddress(index, str(ipaddress.ip_address(address)), prefixlen, scope, flags)

    def add_address(self, one: InterfaceAddress) -> None:
        """Give an interface an address."""
        self._change(_NEWADDR, _CREATE, _address(one))

    def delete_address(self, one: InterfaceAddress) -> None:
        """Take an address from an interface."""
        self._change(_DELADDR, 0, _address(one))

    def ways(self) -> Iterator[Way]:
        """Every route of the main table, of both families, that has a gateway."""
        for payload in self._ask(_GETROUTE, _DUMP, _route(socket.AF_UNSPEC)):
            family, _, _, _, table, *_ = _RTMSG.unpack_from(payload)
            has = dict(_attributes(payload[_RTMSG.size :]))
            table = _number(has[_RTA_TABLE]) if _RTA_TABLE in has else table
            if family in _VERSIONS and table == _MAIN_TABLE and _RTA_GATEWAY in has and _RTA_OIF in has:
                yield Way(_number(has[_RTA_OIF]), str(ipaddress.ip_address(has[_RTA_GATEWAY])))

    def replace_default(self, way: Way) -> None:
        """Make it the default route of its family."""
        request = _route(_family(way.gateway), _RTPROT_STATIC, RT_SCOPE_UNIVERSE, _RTN_UNICAST)
        self._change(_NEWROUTE, _CREATE | _REPLACE, request + _leading(way))

    def delete_default(self, way: Way) -> None:
        """Remove a default route."""
        self._change(_DELROUTE, 0, _route(_family(way.gateway), scope=_RT_SCOPE_NOWHERE) + _leading(way))

    def keep_neighbour(self, index: int, address: str, hardware: bytes) -> None:
        """Take a neighbour's link-layer address for granted: it is never asked for, and never found missing.

        Args:
            index: Of the interface that it is behind.
            address: Of the neighbour.
            hardware: Its link-layer address.
        """
        head = _NDMSG.pack(_family(address), index, _NUD_PERMANENT, 0, _RTN_UNICAST)
        attributes = _attribute(_NDA_DST, ipaddress.ip_address(address).packed) + _attribute(_NDA_LLADDR, hardware)
        self._change(_NEWNEIGH, _CREATE | _REPLACE, head + attributes)

    def discard_from(self, address: str) -> None:
        """Let nothing with this source pass any more, without a word to whoever sends it."""
        packed = ipaddress.ip_address(address).packed
        head = _FIB_RULE_HDR.pack(_family(address), 0, 8 * len(packed), 0, 0, 0, 0, _FR_ACT_BLACKHOLE, 0)
        priority = _attribute(_FRA_PRIORITY, struct.pack("=I", _FIRST_PRIORITY))
        self._change(_NEWRULE, _CREATE, head + _attribute(_FRA_SRC, packed) + priority)

    def _change(self, kind: int, flags: int, payload: bytes) -> None:
        for _ in self._ask(kind, flags | _ACK, payload):
            pass

    def _ask(self, kind: int, flags: int, payload: bytes) -> Iterator[bytes]:
        """The payloads of all answers, until the kernel says that these were all."""
        self._sequence += 1
        length = _NLMSGHDR.size + len(payload)
        self._socket.send(_NLMSGHDR.pack(length, kind, flags | _REQUEST, self._sequence, 0) + payload)
        while True:
            answers = self._socket.recv(_ANSWER_BYTES)
            offset = 0
            while offset < len(answers):
                length, kind, _, number, _ = _NLMSGHDR.unpack_from(answers, offset)
                answer = answers[offset + _NLMSGHDR.size : offset + length]
                offset += _aligned(length)
                if number != self._sequence:
                    continue
                if kind == _NLMSG_ERROR:
                    _check(answer)
                if kind in (_NLMSG_ERROR, _NLMSG_DONE):
                    return
                yield answer


def _check(answer: bytes) -> None:
    """``struct nlmsgerr``: a negated errno, 0 for an acknowledgment."""
    code = -int.from_bytes(answer[:4], sys.byteorder, signed=True)
    if code:
        raise OSError(code, f"rtnetlink: {os.strerror(code)}")


def _attributes(payload: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _RTATTR.size <= len(payload):
        length, kind = _RTATTR.unpack_from(payload, offset)
        yield kind, payload[offset + _RTATTR.size : offset + length]
        offset += _aligned(length)


def _attribute(kind: int, value: bytes) -> bytes:
    length = _RTATTR.size + len(value)
    return _RTATTR.pack(length, kind) + value + bytes(_aligned(length) - length)


def _address(one: InterfaceAddress) -> bytes:
    packed = ipaddress.ip_address(one.address).packed
    head = _IFADDRMSG.pack(_family(one.address), one.prefixlen, one.flags & 0xFF, one.scope, one.index)
    return head + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)


def _route(family: int, protocol: int = 0, scope: int = 0, kind: int = 0) -> bytes:
    return _RTMSG.pack(family, 0, 0, 0, _MAIN_TABLE, protocol, scope, kind, 0)


def _leading(way: Way) -> bytes:
    gateway = ipaddress.ip_address(way.gateway).packed
    return _attribute(_RTA_OIF, struct.pack("=I", way.index)) + _attribute(_RTA_GATEWAY, gateway)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _number(value: bytes) -> int:
    return int.from_bytes(value, sys.byteorder)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
