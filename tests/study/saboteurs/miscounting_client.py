"""An assistant that books twice, and counts one booking."""

import sys
from collections.abc import Sequence
from typing import Any

from lab.live.client import bookings, program
from lab.live.client.bookings import Bookings

commit = Bookings.commit


def commit_twice(self: Bookings, slot: str, **named: Any) -> Any:
    commit(self, slot, **named)
    return commit(self, slot, **named)


def main(argv: Sequence[str] | None = None) -> int:
    bookings.Bookings.commit = commit_twice  # type: ignore[method-assign]
    bookings.Bookings.count = lambda _: 1  # type: ignore[assignment, method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
