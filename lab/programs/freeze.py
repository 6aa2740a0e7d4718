"""A TCP proxy that freezes: the connections that it has stop passing anything, and new ones pass.

It stands in the router, and the client connects to it instead of the server. No packet is lost: both kernels go on
acknowledging what their peers send, until their buffers are full and their windows closed. That is another fault than
a silent loss, and neither side's TCP ever gives up by it.

Commands on standard input: ``freeze`` (the connections of this moment), ``unfreeze`` (all), ``quit``. A frozen
connection passes no end either: a close or a reset comes through after ``unfreeze``, behind what waits.

=========== ============================================================================================
event       with
=========== ============================================================================================
listening   ``port``
accepted    ``connection`` (1, 2, ...), ``local``, ``remote``
connected   ``connection``, ``local``, ``remote``: of its connection to the server
frozen      ``connections``
unfrozen    ``connections``
ended       ``connection``, ``side`` client / server: that side's end was passed on, behind its last octet
error       ``connection``, ``errno`` (name), ``side`` client / server, ``during`` connect / relay
closed      ``connection``, ``forward`` and ``return``: octets that passed
=========== ============================================================================================
"""

import argparse
import contextlib
import errno
import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from lab.programs.commands import Commands
from lab.programs.listening import open_listener, plain
from lab.programs.relay import Relay
from lab.programs.report import say


class Proxy:
    """The program once it listens.

    Args:
        listener: Bound and listening.
        family: Address family of the server.
        server: Its address.
    """

    def __init__(self, listener: socket.socket, family: socket.AddressFamily, server: tuple[Any, ...]) -> None:
        self._listener = listener
        self._family = family
        self._server = server
        self._relays: list[Relay] = []
        self._accepted = 0
        self._commands = Commands()
        self._quit = False

    def run(self) -> None:
        """Go on until ``quit`` comes."""
        while not self._quit:
            poll = select.poll()
            poll.register(self._listener, select.POLLIN)
            if not self._commands.ended:
                poll.register(self._commands.descriptor, select.POLLIN)
            owners = {descriptor: relay for relay in self._relays for descriptor in relay.sockets}
            for relay in self._relays:
                for descriptor, mask in relay.sockets.items():
                    poll.register(descriptor, mask)
            ready = dict(poll.poll())
            # A freeze takes every connection that was set up before it, and everything that had not passed.
            if ready.pop(self._listener.fileno(), 0):
                self._accept(time.monotonic())
            if mask := ready.pop(self._commands.descriptor, 0):
                for word in self._commands.on_event(mask):
                    self._obey(word)
            for descriptor in ready.keys() & owners.keys():
                self._pass_on(owners[descriptor], descriptor, ready[descriptor])
            self._relays = [relay for relay in self._relays if not relay.over]

    def _pass_on(self, relay: Relay, descriptor: int, mask: int) -> None:
        # The event of its other descriptor may have ended it, and a command may have frozen it.
        if not relay.over and not relay.frozen:
            relay.on_event(descriptor, mask)

    def _accept(self, at: float) -> None:
        while True:
            try:
                client, remote = self._listener.accept()
            except OSError:
                return  # No more, or gone before it was taken.
            self._connect(client, remote, at)

    def _connect(self, client: socket.socket, remote: tuple[Any, ...], at: float) -> None:
        self._accepted += 1
        say("accepted", at=at, connection=self._accepted, local=plain(client.getsockname()), remote=plain(remote))
        server = socket.socket(self._family, socket.SOCK_STREAM)
        client.setblocking(False)
        server.setblocking(False)
        code = server.connect_ex(self._server)
        relay = Relay(self._accepted, client, server)
        self._relays.append(relay)
        if code not in (0, errno.EINPROGRESS):
            relay.refuse(code)

    def _obey(self, word: str) -> None:
        if word == "quit":
            self._quit = True
        elif word in ("freeze", "unfreeze"):
            changed = [relay for relay in self._relays if relay.frozen != (word == "freeze")]
            for relay in changed:
                relay.frozen = word == "freeze"
            say("frozen" if word == "freeze" else "unfrozen", connections=[relay.number for relay in changed])
        else:
            sys.stderr.write(f"unknown command: {word}\n")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.programs.freeze", description=__doc__)
    made.add_argument("port", type=int, help="where to listen; 0 takes a free one, which is said")
    made.add_argument("server", help="where the server is, by name or address")
    made.add_argument("server_port", type=int)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the proxy; its exit status."""
    options = parser().parse_args(argv)
    try:
        found = socket.getaddrinfo(options.server, options.server_port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        sys.stderr.write(f"{options.server}: {error.strerror}\n")
        return 2
    with open_listener(options.port) as listener:
        say("listening", port=listener.getsockname()[1])
        with contextlib.suppress(KeyboardInterrupt):
            Proxy(listener, found[0][0], found[0][4]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
