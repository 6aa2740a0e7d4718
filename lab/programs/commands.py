"""Commands on standard input, one word per line."""

import os
import select

STDIN = 0


class Commands:
    """Reads words as they come, without waiting.

    Args:
        descriptor: Where they come from.
    """

    def __init__(self, descriptor: int = STDIN) -> None:
        self.descriptor = descriptor
        self.ended = False
        """Nothing more will come; the program goes on without."""
        self._rest = b""

    def on_event(self, mask: int) -> list[str]:
        """The words that are complete."""
        try:
            data = os.read(self.descriptor, 4096) if mask & (select.POLLIN | select.POLLHUP) else b""
        except OSError:
            data = b""
        self.ended = not data
        *words, self._rest = (self._rest + data).split(b"\n")
        return [word.decode(errors="backslashreplace").strip() for word in words if word.strip()]
