"""A client that connects, sends small lines or idles, and says exactly when it noticed what.

Commands on standard input: ``send`` (one line now), ``busy`` (a line every ``--interval``), ``idle`` (stop that),
``shutdown`` (FIN, keep reading), ``close``, ``quit``. Exit status 1 after an error, 2 for a
name that does not resolve, 0 otherwise.
"""

import argparse
import contextlib
import errno
import select
import socket
import sys
import time
from collections.abc import Sequence

from lab.programs.commands import Commands
from lab.programs.connection import Connection
from lab.programs.options import add_socket_options, apply_socket_options
from lab.programs.report import say

DEFAULT_INTERVAL_S = 0.25


class Client:
    """The program after its connection is set up.

    Args:
        connection: The one connection.
        interval_s: Between two lines while busy.
        exchanges: Idle after so many lines; None to go on.
        keep_open: Go on sending when the server has ended its direction.
    """

    def __init__(self, connection: Connection, interval_s: float, exchanges: int | None, *, keep_open: bool) -> None:
        self._connection = connection
        self._interval_s = interval_s
        self._left = exchanges
        self._keep_open = keep_open
        self._lines = 0
        self._commands = Commands()
        self._quit = False
        self._send_at: float | None = None if exchanges == 0 else time.monotonic()

    def run(self) -> None:
        """Go on until the connection is over or ``quit`` comes."""
        while not self._quit and not self._connection.over:
            poll = select.poll()
            poll.register(self._connection.socket, self._connection.wants)
            if not self._commands.ended:
                poll.register(self._commands.descriptor, select.POLLIN)
            wait_ms = None if self._send_at is None else max(self._send_at - time.monotonic(), 0) * 1e3
            ready = dict(poll.poll(wait_ms))
            at = time.monotonic()
            if mask := ready.pop(self._connection.socket.fileno(), 0):
                self._connection.on_event(mask, at)
                if self._connection.eof and not self._keep_open:
                    self._connection.close()
            if mask := ready.pop(self._commands.descriptor, 0):
                for word in self._commands.on_event(mask):
                    self._obey(word)
            if self._send_at is not None and at >= self._send_at:
                self._send_in_turn(at)

    def _send_in_turn(self, at: float) -> None:
        self._send()
        self._send_at = at + self._interval_s
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self._left = self._send_at = None

    def _send(self) -> None:
        if not self._connection.over:
            self._lines += 1
            self._connection.write(b"line %d\n" % self._lines)

    def _obey(self, word: str) -> None:
        if word == "send":
            self._send()
        elif word == "idle":
            self._send_at = None
        elif word == "busy":
            self._send_at = time.monotonic()
        elif word == "shutdown":
            self._connection.shutdown()
        elif word == "close":
            self._connection.close()
        elif word == "quit":
            self._quit = True
        else:
            sys.stderr.write(f"unknown command: {word}\n")


def connect(options: argparse.Namespace) -> Connection | None:
    """The connection, or None after its error has been said."""
    family, kind, protocol, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    apply_socket_options(opened, options)
    if options.syncnt is not None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, options.syncnt)
    if options.bind_port:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("", options.bind_port))
    opened.setblocking(False)
    code = opened.connect_ex(address)
    say("connecting", local=list(opened.getsockname()[:2]), remote=list(address[:2]))
    if code == errno.EINPROGRESS:
        poll = select.poll()
        poll.register(opened, select.POLLOUT)
        poll.poll()
        code = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    at = time.monotonic()
    if code:
        opened.close()
        say("error", at=at, errno=errno.errorcode.get(code, str(code)), during="connect", second_read=None)
        return None
    say("connected", at=at, local=list(opened.getsockname()[:2]), remote=list(opened.getpeername()[:2]))
    return Connection(opened)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.programs.client", description=__doc__)
    made.add_argument("host")
    made.add_argument("port", type=int)
    made.add_argument("--bind-port", type=int, metavar="PORT", help="local port")
    made.add_argument("--syncnt", type=int, metavar="N", help="TCP_SYNCNT")
    made.add_argument("--connect-only", action="store_true", help="send nothing until told")
    made.add_argument("--idle-after", type=int, metavar="N", help="idle after N lines")
    made.add_argument("--fill", type=int, default=0, metavar="N", help="send N octets first, as fast as they are taken")
    add_socket_options(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the client; its exit status."""
    options = parser().parse_args(argv)
    try:
        connection = connect(options)
    except socket.gaierror as error:
        sys.stderr.write(f"{options.host}: {error.strerror}\n")
        return 2
    if connection is None:
        return 1
    if options.fill:
        connection.write(bytes(options.fill))
    exchanges = 0 if options.connect_only or options.fill else options.idle_after
    with contextlib.suppress(KeyboardInterrupt):
        interval_s = options.interval or DEFAULT_INTERVAL_S
        Client(connection, interval_s, exchanges, keep_open=options.keep_open).run()
    return 1 if connection.failed else 0


if __name__ == "__main__":
    sys.exit(main())
