"""One client's connection and the one that a proxy has for it, with everything that passes between them."""

import errno
import select
import socket
import struct
from typing import Any

from lab.programs.report import say

CHUNK_BYTES = 1 << 16
"""Octets taken from one side before the other one has them; more waits in the kernels, whose windows then close."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without lingering: close() sends a RST."""


class Way:
    """One direction of a relay: what was read at one end and is not written at the other yet.

    Args:
        name: forward or return.
        source: Read from.
        sink: Written to.
    """

    def __init__(self, name: str, source: socket.socket, sink: socket.socket) -> None:
        self.name = name
        self.source = source
        self.sink = sink
        self.passed = 0
        """Octets that the sink's kernel has taken."""

        self.ended = False
        """The source has ended this direction, and so has the sink been told."""

        self._waiting = b""
        self._eof = False

    @property
    def reads(self) -> bool:
        """Whether it takes what the source has."""
        return not self._waiting and not self._eof

    @property
    def writes(self) -> bool:
        """Whether it has something for the sink."""
        return bool(self._waiting)

    def read(self) -> None:
        """Take what is there."""
        try:
            self._waiting = self.source.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        self._eof = not self._waiting

    def write(self) -> None:
        """Give the sink what it takes, and the end of the direction behind the last octet."""
        if self._waiting:
            try:
                count = self.sink.send(self._waiting)
            except BlockingIOError:
                return
            self.passed += count
            self._waiting = self._waiting[count:]
        if self._eof and not self._waiting and not self.ended:
            self.ended = True
            self.sink.shutdown(socket.SHUT_WR)


class Relay:
    """Both connections of one client; an end of one becomes the same end of the other: FIN for FIN, RST for RST.

    Args:
        number: Said with every event.
        client: Accepted.
        server: Its connection to the server is being set up, or accepted as well.
        connecting: Whether it is being set up.
        sides: What client and server are called.
        ways: What the two directions are called, the client's first.
    """

    def __init__(
        self,
        number: int,
        client: socket.socket,
        server: socket.socket,
        *,
        connecting: bool = True,
        sides: tuple[str, str] = ("client", "server"),
        ways: tuple[str, str] = ("forward", "return"),
    ) -> None:
        self.number = number
        self.over = False
        self.frozen = False
        """Nothing passes: neither octets nor an end. Both kernels go on acknowledging what comes."""

        self._client = client
        self._server = server
        self._connecting = connecting
        self._names = dict(zip((client, server), sides, strict=True))
        self._ways = (Way(ways[0], client, server), Way(ways[1], server, client))
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def sockets(self) -> dict[int, int]:
        """Per descriptor the event mask for poll(2). None while frozen: poll adds errors, which would pass as well."""
        if self.frozen or self.over:
            return {}
        if self._connecting:
            return {self._client.fileno(): 0, self._server.fileno(): select.POLLOUT}
        masks = {end: self._mask(end) for end in (self._client, self._server)}
        # Where both directions are shut, poll(2) says so at once and for ever.
        return {end.fileno(): mask for end, mask in masks.items() if mask or not self._shut(end)}

    def on_event(self, descriptor: int, mask: int) -> None:
        """Deal with what poll(2) reported for one of the descriptors."""
        end = self._client if descriptor == self._client.fileno() else self._server
        at = end
        try:
            if mask & select.POLLERR:
                self._raise(end)
            if self._connecting:
                self._on_connecting(end, mask)
                return
            for way in self._ways:
                at = end
                reads = way.source is end and bool(mask & (select.POLLIN | select.POLLHUP)) and way.reads
                if reads:
                    way.read()
                if reads or (way.sink is end and mask & select.POLLOUT):
                    # What fails from here on is the sink's, whoever had something to say.
                    at = way.sink
                    self._write(way)
        except OSError as error:
            self._fail(at, error)
            return
        if all(way.ended for way in self._ways):
            self._close()

    def refuse(self, code: int) -> None:
        """The server cannot be reached: reset the client.

        Args:
            code: The error's number.
        """
        self._fail(self._server, OSError(code, errno.errorcode.get(code, str(code))))

    def abort(self) -> None:
        """Reset both."""
        for one in (self._client, self._server):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._close()

    def _write(self, way: Way) -> None:
        ended = way.ended
        way.write()
        if way.ended and not ended:
            self._say("ended", side=self._names[way.source])

    def _on_connecting(self, end: socket.socket, mask: int) -> None:
        if end is self._server and mask & select.POLLOUT:
            self._connecting = False
            self._say("connected", local=list(end.getsockname()[:2]), remote=list(end.getpeername()[:2]))
        elif mask & select.POLLHUP:
            self._raise(end)

    def _mask(self, end: socket.socket) -> int:
        reads = any(way.source is end and way.reads for way in self._ways)
        writes = any(way.sink is end and way.writes for way in self._ways)
        return (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0)

    def _shut(self, end: socket.socket) -> bool:
        """Whether everything for this end has been written, its end too."""
        return any(way.sink is end and way.ended for way in self._ways)

    def _raise(self, end: socket.socket) -> None:
        code = end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or errno.ECONNRESET
        raise OSError(code, errno.errorcode.get(code, str(code)))

    def _fail(self, end: socket.socket, error: OSError) -> None:
        """One side is gone: the other one is told by a RST, as if there were no proxy."""
        during = "connect" if self._connecting else "relay"
        name = errno.errorcode.get(error.errno or 0, str(error.errno))
        self._say("error", errno=name, side=self._names[end], during=during)
        self.abort()

    def _close(self) -> None:
        self.over = True
        for one in (self._client, self._server):
            one.close()
        self._say("closed", **{way.name: way.passed for way in self._ways})

    def _say(self, event: str, **detail: Any) -> None:
        say(event, connection=self.number, **detail)
