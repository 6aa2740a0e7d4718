"""Listening sockets that keep the number of unfinished handshakes small."""

import contextlib
import socket
from collections import OrderedDict

from lab.core.errors import UsageError

MOST_PORT = 65535

MOST_OPENING = 512
"""Handshakes under way at once. TLS holds a quarter of a megabyte for each of them in asyncio."""

BACKLOG = 4096
"""Connections that the kernel keeps until they are accepted; net.core.somaxconn caps it."""


class Door(socket.socket):
    """A listener; of too many half-open connections it lets the oldest go, so that an honest client still gets in.

    asyncio accepts through it; ``opened`` says that a connection's handshakes are over.
    """

    most_opening = MOST_OPENING

    def __init__(self, family: socket.AddressFamily) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._opening: OrderedDict[tuple[object, ...], socket.socket] = OrderedDict()
        self.dropped = 0
        """Half-open connections that were let go."""

    def accept(self) -> tuple[socket.socket, tuple[object, ...]]:
        """The next connection."""
        accepted, address = super().accept()
        if len(self._opening) >= self.most_opening:
            self._forget_closed()
        while len(self._opening) >= self.most_opening:
            _, oldest = self._opening.popitem(last=False)
            self.dropped += 1
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its transport sees the end and closes
        self._opening[address] = accepted
        return accepted, address

    def opened(self, address: tuple[object, ...]) -> None:
        """Take note that the handshakes with this peer are done, or that it is gone."""
        self._opening.pop(address, None)

    @property
    def opening(self) -> int:
        """Handshakes under way."""
        self._forget_closed()
        return len(self._opening)

    def _forget_closed(self) -> None:
        for address in [address for address, one in self._opening.items() if one.fileno() == -1]:
            del self._opening[address]


def listen(host: str | None, port: int) -> Door:
    """A listener.

    Args:
        host: Address or name; None for every address of both families.
        port: 0 takes a free one.

    Raises:
        OSError: the address is not this machine's, or the port is taken.
        UsageError: there is no such port; the resolver would take it modulo 65536.
    """
    if not 0 <= port <= MOST_PORT:
        raise UsageError(f"There is no port {port}.", fix=f"name one from 1 to {MOST_PORT}, or 0 for a free one")
    door: Door | None = None
    try:
        if host is None:
            dual = socket.has_dualstack_ipv6()
            door = _bound(socket.AF_INET6 if dual else socket.AF_INET, ("", port), dual=dual)
        else:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            door = _bound(family, address)
        door.listen(BACKLOG)
    except BaseException as error:
        if door is not None:
            door.close()
        if isinstance(error, OSError):  # It does not say by itself which of several ports it was.
            raise OSError(error.errno, error.strerror, f"{host or '*'}:{port}") from error
        raise
    return door


def _bound(family: socket.AddressFamily, address: tuple[object, ...], *, dual: bool = False) -> Door:
    door = Door(family)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        door.bind(address)
        door.setblocking(False)
    except BaseException:
        door.close()
        raise
    return door
