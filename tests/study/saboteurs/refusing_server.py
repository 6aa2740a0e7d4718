"""A server that takes no session back."""

import sys
from collections.abc import Sequence
from typing import Any

from lab.live.server import program
from lab.live.session import limit
from lab.live.session.limit import Refusal


def refuse(*_: Any, resumes: bool, **__: Any) -> Refusal | None:
    return Refusal.HELD if resumes else None


def main(argv: Sequence[str] | None = None) -> int:
    limit.decide = refuse
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
