"""Whether a program is well, read from the kernel's list of sockets: asking the program itself would be one more flow.

``python -m lab.programs.health listening 5000`` exits with 0 where a socket of this network namespace listens on the
port, ``established 5000`` where one is connected to it; with 1 where none is.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

STATES = {"established": "01", "listening": "0A"}
"""``include/net/tcp_states.h``, as /proc/net/tcp prints them."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _STATE = 1, 2, 3


def has_socket(lines: Iterable[str], state: str, port: int) -> bool:
    """Whether a line of /proc/net/tcp shows such a socket.

    Args:
        lines: Without the head line.
        state: A key of ``STATES``.
        port: The own port of a listener, the other end's of a connection.
    """
    end = _LOCAL if state == "listening" else _REMOTE
    found = (line.split() for line in lines)
    return any(fields[_STATE] == STATES[state] and int(fields[end].rpartition(":")[2], 16) == port for fields in found)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.programs.health", description=__doc__)
    parser.add_argument("state", choices=STATES)
    parser.add_argument("port", type=int)
    options = parser.parse_args(argv)
    return 0 if has_socket(_lines(), options.state, options.port) else 1


def _lines() -> Iterator[str]:
    for table in _TABLES:
        if table.exists():
            yield from table.read_text(encoding="ascii").splitlines()[1:]


if __name__ == "__main__":
    sys.exit(main())
