"""A relay for a host and a remote that both connect by themselves, as those of livekit-agents do.

Two ports, so that nobody has to guess who came. What passes is not read: it is octet for octet the same, and an end of
one side is the same end of the other one (``lab.programs.relay``): FIN for FIN, RST for RST, and a RST for what the
kernel gave up. One direction holds 64 KiB at most; then its sender has to wait.

=========== ============================================================================================
event       with
=========== ============================================================================================
listening   ``host`` and ``remote``: the port of each
started     ``program``: its command line
connected   ``side`` host / remote, ``local``, ``remote``
joined
refused     ``side``, ``remote``, ``why``: a connection too many
lost        ``side``, ``errno``: gone before the other one came; its place is free again. null: it said its end, and
            another one came in its place
ended       ``side``: its FIN was passed on, behind its last octet
error       ``side``, ``errno`` (name): gone otherwise; the other side is reset
closed      ``from_host`` and ``from_remote``: octets that passed
exited      ``status`` of the program
=========== ============================================================================================
"""

import contextlib
import errno
import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from lab.core.errors import UsageError
from lab.host.shell.beside import Beside
from lab.programs.listening import plain
from lab.programs.relay import Relay
from lab.programs.report import say

SIDES = ("remote", "host")
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without lingering: close() sends a RST."""

Handler = Callable[[int], None]
"""Takes the event mask of poll(2)."""


class Joint:
    """The place where the two meet. It is over with both, and with the program beside it.

    Args:
        listeners: Of each side.
        program: To be started beside it; empty for none.
        stop: A descriptor; what can be read from it ends everything.
    """

    def __init__(
        self, listeners: Mapping[str, socket.socket], program: Sequence[str] = (), stop: int | None = None
    ) -> None:
        self._listeners = listeners
        self._argv = program
        self._stop = stop
        self._stopped = False
        self._here: dict[str, socket.socket] = {}
        """Those who came, until both have."""

        self._relay: Relay | None = None
        self._program: Beside | None = None
        self._exited = False
        """The program has ended; its children may be there."""

    def run(self) -> None:
        """Join the first two that come, and carry what they say until it is over.

        Raises:
            UsageError: the program cannot be started, or has ended before both were there.
        """
        ports = {side: listener.getsockname()[1] for side, listener in self._listeners.items()}
        say("listening", **ports)
        try:
            if self._argv:
                self._start()
            while not self._over():
                self._step()
        finally:
            self._end()

    def _over(self) -> bool:
        joined = self._relay is not None and self._relay.over
        return self._stopped or (joined and (self._program is None or self._exited))

    def _start(self) -> None:
        self._program = Beside(self._argv)
        say("started", program=list(self._argv))

    def _step(self) -> None:
        poll = select.poll()
        handlers: dict[int, Handler] = {}
        for descriptor, mask, handler in self._watched():
            handlers[descriptor] = handler
            poll.register(descriptor, mask)
        for descriptor, mask in poll.poll():
            handlers[descriptor](mask)

    def _watched(self) -> Iterator[tuple[int, int, Handler]]:
        if self._stop is not None:
            yield self._stop, select.POLLIN, self._on_stop
        if self._program is not None and not self._exited:
            yield self._program.fileno(), select.POLLIN, partial(self._on_exit, self._program)
        for side, listener in self._listeners.items():
            yield listener.fileno(), select.POLLIN, partial(self._accept, side, listener)
        for side, connection in self._here.items():
            # Without a mask poll(2) tells of a reset. What a side says, its FIN too, waits until it is joined.
            yield connection.fileno(), 0, partial(self._on_lost, side, connection)
        if self._relay is not None:
            for descriptor, mask in self._relay.sockets.items():
                yield descriptor, mask, partial(self._pass_on, self._relay, descriptor)

    def _on_stop(self, _mask: int) -> None:
        self._stopped = True

    def _on_exit(self, program: Beside, _mask: int) -> None:
        status = program.wait()
        self._exited = True
        say("exited", status=status)
        if self._relay is None and not self._stopped and not self._is_interrupted(program):
            raise UsageError(f"The program has ended, with status {status}, before both a host and a remote were here.")

    def _is_interrupted(self, program: Beside) -> bool:
        """An interrupt at a terminal is the program's too, which may be the first to end of it."""
        self._stopped = self._stop is not None and program.shares_interrupt(self._stop)
        return self._stopped

    def _accept(self, side: str, listener: socket.socket, _mask: int) -> None:
        try:
            connection, remote = listener.accept()
        except OSError:
            return  # Gone before it was taken.
        if self._relay is None:
            self._give_up_ended(side)
        if self._relay is not None or side in self._here:
            say("refused", side=side, remote=plain(remote), why="there is one already")
            _reset(connection)
            return
        connection.setblocking(False)
        self._here[side] = connection
        say("connected", side=side, local=plain(connection.getsockname()), remote=plain(remote))
        if len(self._here) == len(SIDES):
            ends = [self._here.pop(name) for name in SIDES]
            ways = ("from_remote", "from_host")
            self._relay = Relay(1, ends[0], ends[1], connecting=False, sides=("remote", "host"), ways=ways)
            say("joined")

    def _on_lost(self, side: str, connection: socket.socket, _mask: int) -> None:
        if self._here.get(side) is connection:
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._here.pop(side).close()
            say("lost", side=side, errno=errno.errorcode.get(code, str(code)))

    def _give_up_ended(self, side: str) -> None:
        """One whose FIN is here is waited for no longer than until another one comes: it may be gone."""
        if (connection := self._here.get(side)) is None:
            return
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        if poll.poll(0):
            _reset(self._here.pop(side))
            say("lost", side=side, errno=None)

    def _pass_on(self, relay: Relay, descriptor: int, mask: int) -> None:
        # The event of its other descriptor may have ended it.
        if not relay.over:
            relay.on_event(descriptor, mask)

    def _end(self) -> None:
        """Leave nothing behind: whoever is still here is reset, and the program ended."""
        for connection in self._here.values():
            _reset(connection)
        try:
            if self._relay is not None and not self._relay.over:
                self._relay.abort()
        finally:  # It says so, and it may be that nobody reads it.
            if self._program is not None:
                self._program.end()


@contextlib.contextmanager
def listening(address: str, ports: Mapping[str, int]) -> Iterator[Mapping[str, socket.socket]]:
    """Listen for both.

    Args:
        address: To listen on, or a name of it.
        ports: Of each side; 0 takes a free one.

    Raises:
        OSError: the address or a port is not to be had.
    """
    family, *_, found = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    with contextlib.ExitStack() as open_ones:
        listeners: dict[str, socket.socket] = {}
        for side in SIDES:
            listeners[side] = open_ones.enter_context(socket.create_server((found[0], ports[side]), family=family))
            listeners[side].setblocking(False)
        yield listeners


def serve(listeners: Mapping[str, socket.socket], program: Sequence[str]) -> None:
    """Be the relay of the first two that come until it is over, or a signal ends it.

    Args:
        listeners: Of each side.
        program: To be started beside it; empty for none.

    Raises:
        UsageError: the program cannot be started, or has ended before both were there.
        KeyboardInterrupt: the signal was an interrupt; nothing is left behind.
    """
    with _signals() as (stop, came):
        Joint(listeners, program, stop).run()
        if signal.SIGINT in came:
            raise KeyboardInterrupt


@contextlib.contextmanager
def _signals() -> Iterator[tuple[int, Sequence[int]]]:
    """A descriptor that can be read once a signal has come that ends programs, and those that came."""
    came: list[int] = []
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # One that is ignored, as under nohup, stays so.
    before = {number: old for number in ending if (old := signal.getsignal(number)) is not signal.SIG_IGN}
    signal.set_wakeup_fd(write)
    for number in before:
        signal.signal(number, lambda number, _frame: came.append(number))  # The descriptor says when.
    try:
        yield read, came
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()
