"""Lines of standard input, read beside an event loop."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

from lab.host.typed import typed

DEADLINE_S = 10.0


@contextlib.contextmanager
def pipe(*pieces: bytes) -> Iterator[int]:
    """A descriptor from which this can be read, and then the end."""
    reading, writing = os.pipe()
    try:
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def test_lines_come_in_order_without_their_newlines_and_end_with_the_input() -> None:
    async def read(descriptor: int) -> list[str]:
        async with asyncio.timeout(DEADLINE_S):
            return [line async for line in typed(descriptor)]

    with pipe(b"en", b"d\n\n  shutdown \nla", b"st") as descriptor:
        assert asyncio.run(read(descriptor)) == ["end", "", "shutdown", "last"]


def test_a_program_may_end_before_its_input_does() -> None:
    async def first(descriptor: int) -> str:
        async with asyncio.timeout(DEADLINE_S):
            return await anext(typed(descriptor))

    reading, writing = os.pipe()
    os.write(writing, b"first\n")
    try:
        assert asyncio.run(first(reading)) == "first"
    finally:
        os.close(writing)
