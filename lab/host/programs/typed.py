"""Lines of standard input, for a program that somebody leads by hand."""

import asyncio
import os
import select
import sys
import threading
from collections.abc import AsyncIterator

STDIN = 0
_CHUNK = 4096


async def typed(descriptor: int = STDIN) -> AsyncIterator[str]:
    """Each line as it comes, without its newline; ends with the input, and at once with one that cannot be read.

    A thread reads, since not every kind of standard input can be waited for, and past Python's own buffer, whose lock
    it would still hold when the program ends.

    Args:
        descriptor: Where they come from.
    """
    if descriptor == STDIN and sys.__stdin__ is None:
        # It was closed when the program began, and what has its number since is something else.
        return
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def hand_over(line: str | None) -> None:
        try:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        except RuntimeError:
            return  # The program is over, and its loop closed.

    def read() -> None:
        rest = b""
        while data := _read(descriptor):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                hand_over(line.decode(errors="backslashreplace").strip())
        if rest:
            hand_over(rest.decode(errors="backslashreplace").strip())
        hand_over(None)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


def _read(descriptor: int) -> bytes:
    """What comes next; nothing at the end, or where nothing can be read."""
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            # Somebody who has it too made it so.
            select.select([descriptor], [], [])
        except OSError:
            return b""
