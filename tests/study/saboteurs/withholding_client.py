"""An assistant that never sends a result, and says that it did."""

import sys
from collections.abc import Sequence

from lab.live.client import program
from lab.live.client.calls import Calls


def pretend(self: Calls) -> None:
    line = self._live()
    if not self.hold and line is not None:
        for response in self.ledger.take(now=self._clock.now()):
            self._written(response, line)()


def main(argv: Sequence[str] | None = None) -> int:
    Calls.flush = pretend  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
