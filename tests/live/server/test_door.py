"""A door lets the oldest of too many half-open connections go."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from lab.core.errors import UsageError
from lab.live.server.door import Door, listen


@contextlib.contextmanager
def knocking(door: Door) -> Iterator[tuple[socket.socket, socket.socket, tuple[object, ...]]]:
    """A connection: the client's end, the server's, and the client's address."""
    client = socket.create_connection(door.getsockname()[:2])
    door.setblocking(True)
    accepted, address = door.accept()
    with client, accepted:
        yield client, accepted, address


def test_the_oldest_of_too_many_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Door, "most_opening", 2)
    with listen("127.0.0.1", 0) as door, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(knocking(door))[0] for _ in range(3)]

        for client in clients:
            client.settimeout(0.2)
        assert clients[0].recv(1) == b""
        for client in clients[1:]:
            with pytest.raises(TimeoutError):
                client.recv(1)
        assert (door.dropped, door.opening) == (1, 2)


def test_who_is_in_or_gone_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Door, "most_opening", 2)
    with listen("127.0.0.1", 0) as door, contextlib.ExitStack() as stack:
        _, _, address = stack.enter_context(knocking(door))
        door.opened(address)
        _, gone, _ = stack.enter_context(knocking(door))
        gone.close()
        assert door.opening == 0
        for _ in range(2):
            stack.enter_context(knocking(door))

        assert (door.dropped, door.opening) == (0, 2)


def test_one_listener_serves_both_families() -> None:
    with listen(None, 0) as door:
        port = door.getsockname()[1]
        for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            socket.create_connection((host, port)).close()


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open() -> None:
    with listen("127.0.0.1", 0) as door, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", door.getsockname()[1])


@pytest.mark.parametrize("port", [65_536, 99_999, -1])
def test_a_port_that_there_is_not_is_refused_and_not_taken_modulo(port: int) -> None:
    with pytest.raises(UsageError, match=f"There is no port {port}"):
        listen("127.0.0.1", port)
