"""The inspector's program: in its container, it reads the options of the sockets that the program beside it has."""

import socket
import sys

from lab.core.socket import SocketOptions
from lab.testbed.agent.rpc import serve
from lab.testbed.socket_options import socket_options


class Looking:
    """What an inspector answers."""

    def socket_options(self, local_port: int, remote_port: int) -> SocketOptions | None:
        """Options of the one connection with these ports."""
        return socket_options(local_port, remote_port)


def main(argv: list[str]) -> None:
    """Be the inspector until the caller closes its end.

    Args:
        argv: The caller's socket.
    """
    (path,) = argv
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.connect(path)
    serve(Looking(), caller)


if __name__ == "__main__":
    main(sys.argv[1:])
