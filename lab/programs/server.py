"""A server that takes several connections and says exactly when it noticed what.

It echoes what it reads. Commands on standard input, for all connections: ``send`` (a line), ``read`` (begin to read),
``hold`` (stop reading), ``shutdown`` (FIN, keep reading), ``close``, ``quit``.
"""

import argparse
import contextlib
import select
import socket
import sys
import time
from collections.abc import Sequence

from lab.programs.commands import Commands
from lab.programs.connection import Connection
from lab.programs.listening import open_listener, plain
from lab.programs.options import add_socket_options, apply_socket_options
from lab.programs.report import say


class Server:
    """The program once it listens.

    Args:
        listener: Bound and listening.
        options: The command line.
    """

    def __init__(self, listener: socket.socket, options: argparse.Namespace) -> None:
        self._listener = listener
        self._options = options
        self._reads: bool = options.read
        self._connections: dict[int, Connection] = {}
        self._accepted = 0
        self._commands = Commands()
        self._quit = False
        self._send_at: float | None = time.monotonic() if options.interval else None

    def run(self) -> None:
        """Go on until ``quit`` comes."""
        while not self._quit:
            poll = select.poll()
            poll.register(self._listener, select.POLLIN)
            if not self._commands.ended:
                poll.register(self._commands.descriptor, select.POLLIN)
            for descriptor, connection in self._connections.items():
                poll.register(descriptor, connection.wants)
            wait_ms = None if self._send_at is None else max(self._send_at - time.monotonic(), 0) * 1e3
            ready = dict(poll.poll(wait_ms))
            self._deal_with(ready, time.monotonic())
            self._connections = {fd: one for fd, one in self._connections.items() if not one.over}

    def _deal_with(self, ready: dict[int, int], at: float) -> None:
        for descriptor in ready.keys() & self._connections.keys():
            self._serve(self._connections[descriptor], ready[descriptor], at)
        if mask := ready.get(self._commands.descriptor, 0):
            for word in self._commands.on_event(mask):
                self._obey(word)
        if self._listener.fileno() in ready:
            self._accept(at)
        if self._send_at is not None and at >= self._send_at:
            self._send_at = at + self._options.interval
            self._obey("send")

    def _accept(self, at: float) -> None:
        try:
            opened, remote = self._listener.accept()
        except OSError:
            return  # It was gone before it was taken.
        self._accepted += 1
        apply_socket_options(opened, self._options)
        label = {"connection": self._accepted}
        say("accepted", at=at, **label, local=plain(opened.getsockname()), remote=plain(remote))
        self._connections[opened.fileno()] = Connection(opened, reads=self._reads, label=label)

    def _serve(self, connection: Connection, mask: int, at: float) -> None:
        data = connection.on_event(mask, at)
        if data and self._options.reply:
            connection.write(data)
        limit = self._options.close_after
        ended = connection.eof and not self._options.keep_open
        if ended or (limit is not None and connection.received >= limit):
            connection.close()

    def _obey(self, word: str) -> None:
        if word == "quit":
            self._quit = True
        elif word in ("read", "hold"):
            self._reads = word == "read"
        elif word not in ("send", "shutdown", "close"):
            sys.stderr.write(f"unknown command: {word}\n")
        for connection in self._connections.values():
            connection.reads = self._reads
            if word == "send" and not connection.over:
                connection.write(b"news\n")
            elif word == "shutdown":
                connection.shutdown()
            elif word == "close":
                connection.close()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.programs.server", description=__doc__)
    made.add_argument("port", type=int, help="0 takes a free one, which is said")
    made.add_argument("--read", action=argparse.BooleanOptionalAction, default=True, help="--no-read: a zero window")
    made.add_argument("--reply", action="store_true", default=True, help="echo (the default)")
    made.add_argument("--silent", dest="reply", action="store_false", help="read and answer nothing")
    made.add_argument("--close-after", type=int, metavar="N", help="close a connection after N octets from it")
    add_socket_options(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server; its exit status."""
    options = parser().parse_args(argv)
    with open_listener(options.port, tiny=not options.read) as listener:
        say("listening", port=listener.getsockname()[1])
        with contextlib.suppress(KeyboardInterrupt):
            Server(listener, options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
