"""What the connection tracking of this process's network namespace knows of translated TCP connections (ctnetlink)."""

import socket
from collections.abc import Iterator
from typing import Any

from lab.core.errors import EnvironmentNotReady, Unsupported
from lab.core.flow import Endpoint, FourTuple

_TCP = 6
_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}


def translations() -> dict[FourTuple, FourTuple]:
    """Each TCP connection whose ends have other names on the far side, by its name on the near one.

    Raises:
        Unsupported: the kernel does not tell (``nf_conntrack_netlink``).
        EnvironmentNotReady: CAP_NET_ADMIN is missing.
    """
    found = {}
    for original, reply in _tuples():
        # What comes back goes to the name that the far end knows.
        there = FourTuple(client=reply.server, server=reply.client)
        if there != original:
            found[original] = there
    return found


def _tuples() -> Iterator[tuple[FourTuple, FourTuple]]:
    from pyroute2 import NFCTSocket
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        for family in _FAMILIES.values():
            with NFCTSocket(nfgen_family=family) as conntrack:
                entries = list(conntrack.dump())
            for entry in entries:
                original, reply = (_tcp_tuple(entry.get_attr(f"CTA_TUPLE_{way}")) for way in ("ORIG", "REPLY"))
                if original is not None and reply is not None:
                    yield original, reply
    except PermissionError as error:
        raise EnvironmentNotReady("Connection tracking is read with CAP_NET_ADMIN, which is missing here.") from error
    except (NetlinkError, OSError) as error:
        raise Unsupported(
            f"This kernel does not tell its tracked connections: {error}.", fix="sudo modprobe nf_conntrack_netlink"
        ) from error


def _tcp_tuple(told: Any) -> FourTuple | None:
    """Source and destination of one way; None for another protocol."""
    if told is None:
        return None
    addresses, protocol = told.get_attr("CTA_TUPLE_IP"), told.get_attr("CTA_TUPLE_PROTO")
    if addresses is None or protocol is None or protocol.get_attr("CTA_PROTO_NUM") != _TCP:
        return None
    for family in _FAMILIES:
        source, destination = (addresses.get_attr(f"CTA_IP_V{family}_{end}") for end in ("SRC", "DST"))
        if source is not None and destination is not None:
            return FourTuple(
                client=Endpoint(str(source), protocol.get_attr("CTA_PROTO_SRC_PORT")),
                server=Endpoint(str(destination), protocol.get_attr("CTA_PROTO_DST_PORT")),
            )
    return None
