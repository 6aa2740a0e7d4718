"""Whether a program is well, from the kernel's list of sockets."""

import socket

import pytest

from lab.programs import health

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
LISTENS = "   0: 00000000:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1"
CONNECTED = "   1: 0A02000A:C350 1464C6C6:1388 01 00000000:00000000 00:00000000 00000000     0        0 2 1"
SENDING_SYN = "   1: 0A02000A:C350 1464C6C6:1388 02 00000000:00000000 00:00000000 00000000     0        0 2 1"
ACCEPTED = "   1: 1464C6C6:1388 0A02000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1"


@pytest.mark.parametrize(
    ("line", "state", "port", "expected"),
    [
        (LISTENS, "listening", 5000, True),
        (LISTENS, "listening", 5001, False),
        (LISTENS, "established", 5000, False),
        (CONNECTED, "established", 5000, True),
        (SENDING_SYN, "established", 5000, False),
        (ACCEPTED, "established", 5000, False),
        (CONNECTED, "listening", 50000, False),
    ],
)
def test_state_and_port_decide(line: str, state: str, port: int, expected: bool) -> None:
    assert health.has_socket([line], state, port) is expected


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernel_s_own_list_is_read(family: socket.AddressFamily) -> None:
    with socket.create_server(("", 0), family=family) as listener:
        port = listener.getsockname()[1]

        assert health.main(["listening", str(port)]) == 0
        assert health.main(["established", str(port)]) == 1
        with socket.create_connection(("127.0.0.1" if family == socket.AF_INET else "::1", port)):
            assert health.main(["established", str(port)]) == 0
    assert health.main(["listening", str(port)]) == 1
