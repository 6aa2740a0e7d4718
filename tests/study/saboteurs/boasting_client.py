"""An assistant that tells of an answer to a question that it never put."""

import sys
from collections.abc import Sequence

from lab.live.client import program
from lab.live.client.assistant import Assistant


async def boast(self: Assistant, text: str) -> None:
    self.events.tell("typed", text=text)
    self.events.tell(
        "answer", asked=text, text="It is booked.", says="booked", truth="booked", consistent=True, commit_age_s=3.0
    )


def main(argv: Sequence[str] | None = None) -> int:
    Assistant.answer = boast  # type: ignore[method-assign]
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
