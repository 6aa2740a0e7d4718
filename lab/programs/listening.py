"""A socket that listens in both families, and addresses as they are said."""

import socket
from typing import Any

TINY_BUFFER = 1
"""SO_RCVBUF of a server that does not read; the kernel makes it its minimum, which a few segments fill."""


def open_listener(port: int, *, tiny: bool = False) -> socket.socket:
    """A listener for IPv4 and IPv6, which does not block; for IPv4 alone where the kernel has no IPv6.

    Args:
        port: 0 takes a free one.
        tiny: Its connections get the smallest receive buffer there is.
    """
    dual = socket.has_dualstack_ipv6()
    listener = socket.socket(socket.AF_INET6 if dual else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if dual:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if tiny:
        # Before listen(): the window scale is agreed on in the handshake.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, TINY_BUFFER)
    listener.bind(("", port))
    listener.listen()
    listener.setblocking(False)
    return listener


def plain(address: tuple[Any, ...]) -> list[object]:
    """Address and port as they are said; an IPv4 address that an IPv6 socket has is one of IPv4."""
    return [str(address[0]).removeprefix("::ffff:"), address[1]]
