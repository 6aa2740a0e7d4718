"""Socket options that both programs take."""

import argparse
import socket


def add_socket_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``apply_socket_options`` reads."""
    parser.add_argument("--user-timeout", type=float, metavar="S", help="TCP_USER_TIMEOUT, seconds")
    parser.add_argument(
        "--keepalive", type=_keepalive, metavar="IDLE/INTERVAL/COUNT", help="SO_KEEPALIVE with these, seconds"
    )
    parser.add_argument("--linger2", type=int, metavar="S", help="TCP_LINGER2, seconds")
    parser.add_argument("--interval", type=float, metavar="S", help="send a line this often, seconds")
    parser.add_argument("--keep-open", action="store_true", help="do not close when the peer ends its direction")


def apply_socket_options(opened: socket.socket, options: argparse.Namespace) -> None:
    """Set what the command line asked for, and TCP_NODELAY: a line leaves as one segment at once."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if options.user_timeout is not None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(options.user_timeout * 1e3))
    if options.linger2 is not None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, options.linger2)
    if options.keepalive is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in zip(
            (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT), options.keepalive, strict=True
        ):
            opened.setsockopt(socket.IPPROTO_TCP, option, value)


def _keepalive(text: str) -> tuple[int, int, int]:
    idle, interval, count = (int(part) for part in text.split("/"))
    return idle, interval, count
