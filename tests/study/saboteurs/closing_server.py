"""A server that closes each connection as soon as it has told a handle."""

import sys
from collections.abc import Sequence
from typing import Any

from lab.live.protocol import closing
from lab.live.server import program
from lab.live.session.session import Session

ready = Session._ready


def ready_and_close(self: Session, now: float) -> Any:
    return [*ready(self, now), *self.close(closing.INTERNAL_ERROR, "sabotage", now=now)]


def main(argv: Sequence[str] | None = None) -> int:
    Session._ready = ready_and_close  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
