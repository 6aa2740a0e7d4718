"""A server that lets everybody in: its sessions are never locked."""

import sys
from collections.abc import Sequence
from typing import Any

from lab.live.server import program
from lab.live.session import limit
from lab.live.session.session import Session
from lab.live.session.states import State

attach = Session.attach


def accept(*_: Any, **__: Any) -> None:
    return None


def take_over(self: Session, *args: Any, **named: Any) -> Any:
    self.connection, self.state = None, State.FREE
    return attach(self, *args, **named)


def main(argv: Sequence[str] | None = None) -> int:
    limit.decide = accept
    Session.attach = take_over  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
