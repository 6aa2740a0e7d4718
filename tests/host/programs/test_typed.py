"""Lines of standard input, read beside an event loop."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from lab.host.programs.typed import typed

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


async def lines(descriptor: int) -> list[str]:
    async with asyncio.timeout(DEADLINE_S):
        return [line async for line in typed(descriptor)]


def test_input_that_cannot_be_read_has_ended(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert asyncio.run(lines(descriptor)) == []
    finally:
        os.close(descriptor)


def test_input_that_does_not_block_is_waited_for() -> None:
    async def scenario() -> list[str]:
        async with asyncio.timeout(DEADLINE_S):
            found = []
            async for line in typed(reading):
                found.append(line)
                if len(found) == 1:
                    os.write(writing, b"second\n")
                    os.close(writing)
            return found

    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = threading.Thread(target=os.write, args=(writing, b"first\n"))
    writer.start()
    try:
        assert asyncio.run(scenario()) == ["first", "second"]
    finally:
        writer.join()
        os.close(reading)


READ = """
import asyncio, os
from lab.host.programs.typed import typed

async def main():
    print([line async for line in typed()])

asyncio.run(main())
"""


def test_input_that_was_closed_before_the_program_began_has_ended() -> None:
    """Its number is something else's since, which is not read."""
    argv = ["sh", "-c", '"$0" -c "$1" <&-', sys.executable, READ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=6 * DEADLINE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
