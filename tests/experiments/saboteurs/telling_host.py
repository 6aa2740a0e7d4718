"""A job that tells its session's end by a datagram beside the flow, and a simulator that believes it."""

import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import Any

from lab.host.machine.reasons import Ending
from lab.host.programs import job
from lab.host.programs import main as program
from lab.host.protocol.messages import CloseReason, Event, SessionClosed
from lab.host.shell.remote import RemoteSession
from lab.host.shell.session import Session

PORT = 8999

closed = job.Teller.closed
init = RemoteSession.__init__


def closed_and_told(self: job.Teller, session: Session, ending: Ending) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as side:
        side.sendto(b"closed", ("client", PORT))
    closed(self, session, ending)


def init_and_listen(self: RemoteSession, *args: Any, **named: Any) -> None:
    init(self, *args, **named)
    side = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    side.bind(("", PORT))
    loop = asyncio.get_running_loop()

    def heard() -> None:
        side.recv(100)
        told = Event(SessionClosed(CloseReason.USER_INITIATED))
        self._do(self._machine.receive(told, now=loop.time()))

    loop.add_reader(side, heard)


def main(argv: Sequence[str] | None = None) -> int:
    job.Teller.closed = closed_and_told  # type: ignore[method-assign]
    RemoteSession.__init__ = init_and_listen  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
