"""``python -m lab.control.serve``: the controller of the router that it runs in.

::

    python -m lab.control.serve --listen 0.0.0.0:8474 --left 192.0.2.0/24 --right 198.51.100.0/24

On TCP every request carries a token: that of the environment variable LAB_TOKEN, or of the file that LAB_TOKEN_FILE
names; without either, one is made and printed at the start. SIGTERM and SIGINT heal everything and end it.
"""

import argparse
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from lab.control import address
from lab.core.errors import LabError, UsageError

DEFAULT_LISTEN = "127.0.0.1:8474"
CAPTURE_MEBIBYTES = 64


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; the exit status."""
    options = _options(argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Process 1 of a container ignores what it does not handle, and what is half made must be unmade.
        signal.signal(number, _end_early)
    try:
        _serve(options)
    except LabError as error:
        tell(f"{error.message}" + (f" Fix: {error.fix}" if error.fix else ""))
        return error.exit_code
    return 0


def tell(line: str) -> None:
    """One line of the log."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def token_of(environment: os._Environ[str] | dict[str, str]) -> str | None:
    """The token that the environment names, or None.

    Raises:
        UsageError: it is empty, cannot be read, or cannot stand in a header.
    """
    token, path = environment.get("LAB_TOKEN"), environment.get("LAB_TOKEN_FILE")
    if token is None and path is not None:
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"LAB_TOKEN_FILE={path} cannot be read: {error}.") from error
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise UsageError("LAB_TOKEN was expected to be printable ASCII without spaces.", fix="LAB_TOKEN=$(uuidgen)")
    return token


def _end_early(_: int, __: FrameType | None) -> None:
    raise SystemExit(0)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab.control.serve", description="Control the router that this runs in.")
    parser.add_argument(
        "--listen", default=DEFAULT_LISTEN, metavar="WHERE", help="HOST:PORT or unix:PATH (%(default)s)"
    )
    parser.add_argument("--left", default="left", metavar="WHICH", help="towards the client: name, address or network")
    parser.add_argument("--right", default="right", metavar="WHICH", help="the same towards the server")
    parser.add_argument(
        "--wait", type=_seconds, default=None, metavar="S", help="for interfaces that are still being attached"
    )
    parser.add_argument("--firewall", default="auto", choices=("auto", "iptables", "nftables"))
    parser.add_argument("--heartbeat", type=_seconds, metavar="S", help="heal all after so long without a heartbeat")
    parser.add_argument("--name", action="append", default=[], metavar="HOST", help="a name that clients call this by")
    parser.add_argument(
        "--capture-mebibytes",
        type=_mebibytes,
        default=CAPTURE_MEBIBYTES,
        metavar="N",
        help="on disk per side (%(default)s)",
    )
    return parser.parse_args(argv)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86400:
        raise argparse.ArgumentTypeError("seconds, more than 0 and less than a day")
    return value


def _mebibytes(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _serve(options: argparse.Namespace) -> None:
    where = address.parse(options.listen)
    token = None if where.unix else token_of(os.environ)
    if not where.unix and token is None:
        token = secrets.token_urlsafe(24)
        tell(f"token {token} (LAB_TOKEN sets another)")
    from lab.testbed.interfaces import await_interface
    from lab.testbed.runtime import runtime_folder

    deadline = time.monotonic() + (options.wait or 0.0)
    left, right = (await_interface(which, deadline) for which in (options.left, options.right))
    with address.listening(where) as (opened, place), runtime_folder() as folder:
        from lab.control.local import LocalRouter

        # Its capture loads while the rest does.
        with LocalRouter(left, right, options.firewall) as router:
            from lab.control.controller import Controller
            from lab.control.server import Server

            limit = options.capture_mebibytes << 20
            with Controller(
                router, folder, heartbeat_s=options.heartbeat, capture_bytes=limit, tell=tell
            ) as controller:
                line = f"listening on {place}, left {left}, right {right}, rules by {router.firewall}"
                names = [*options.name, socket.gethostname()]
                Server(controller, token, names, ready=lambda: tell(line)).run([opened])


if __name__ == "__main__":
    sys.exit(main())
