"""Events on standard output, whether or not somebody reads it: a full pipe must not hold up a server's sessions."""

import contextlib
import os
import queue
import threading
import time
from typing import Any, Self

from lab.programs.report import line_of

MOST_HELD = 10_000
"""Events that wait for the reader; what comes beyond them is counted, and told of when there is room again."""

LAST_WORDS_S = 1.0
"""How long the end waits for a reader that may have stopped reading."""

STANDARD_OUTPUT = 1
_END = None


class Teller:
    """Prints events as ``say`` does, in order, from a thread of its own; a context manager that tells what is left.

    The thread writes to the descriptor: one that waits inside ``sys.stdout`` would hold its lock against the end of the
    interpreter.

    Args:
        most_held: Events that wait for the reader.
        descriptor: Where to write.
    """

    def __init__(self, most_held: int = MOST_HELD, descriptor: int = STANDARD_OUTPUT) -> None:
        self._held: queue.Queue[tuple[str, float, dict[str, Any]] | None] = queue.Queue(most_held)
        self._gone: OSError | None = None
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._write, name="teller", daemon=True)
        self._thread.start()
        self.untold = 0
        """Events that found no room and have not been told of yet."""

    def __call__(self, event: str, **fields: Any) -> None:
        """Tell an event; never waits.

        Raises:
            OSError: the reader is gone, by what was told before.
        """
        if self._gone is not None:
            raise self._gone
        at = time.monotonic()
        try:
            if self.untold:
                self._held.put_nowait(("untold", at, {"events": self.untold}))
                self.untold = 0
            self._held.put_nowait((event, at, fields))
        except queue.Full:
            self.untold += 1

    def __enter__(self) -> Self:
        """The teller itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Tell what is left, to whoever still reads."""
        with contextlib.suppress(queue.Full):
            self._held.put_nowait(_END)
            self._thread.join(LAST_WORDS_S)

    def _write(self) -> None:
        while (told := self._held.get()) is not _END:
            event, at, fields = told
            line = line_of(event, at, fields).encode()
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError as error:
                self._gone = error
                return
