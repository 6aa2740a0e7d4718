"""Echoes lines, and says what the session server says."""

import argparse
import asyncio
import contextlib
import itertools
import sys
from collections.abc import Sequence

from lab.programs.report import say

numbers = itertools.count(1)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    number, how = next(numbers), "fin"
    say("attach", connection=number)
    try:
        while line := await reader.readline():
            writer.write(line)
            if line == b"die\n":
                sys.exit(3)
    except ConnectionResetError:
        how = "rst"
    except OSError:
        how = "tcp-timeout"
    say("detach", connection=number, how=how)
    with contextlib.suppress(OSError):
        writer.close()


async def run(port: int) -> None:
    server = await asyncio.start_server(serve, None, port)
    say("listening", ws=port)
    await server.serve_forever()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    options, rest = parser.parse_known_args(argv)
    say("given", rest=rest)
    asyncio.run(run(options.port))


if __name__ == "__main__":
    main()
