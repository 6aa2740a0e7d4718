"""What the freezing proxy passes on, what it holds, and how each side's end arrives at the other."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.core.flow import Endpoint
from lab.core.socket import TcpState, Timer
from lab.testbed.sockets import query
from tests.programs.program import Program
from tests.testbed.isolated import isolated, until

TIMEOUT_S = 5.0
SILENT_S = 0.2


@dataclass
class Scene:
    """A proxy, and the server behind it."""

    proxy: Program
    port: int
    listener: socket.socket
    made: int = 0

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """A client's socket, and the server's end of the connection that the proxy made for it."""
        client = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        server, _ = self.listener.accept()
        server.settimeout(TIMEOUT_S)
        self.made += 1
        # The kernels are quicker than the proxy: only from here on an end of one is no failure to connect.
        self.proxy.wait_for("connected", self.made)
        return client, server

    def tell(self, word: str, event: str, count: int = 1) -> list[int]:
        self.proxy.tell(word)
        numbers: list[int] = self.proxy.wait_for(event, count)["connections"]
        return numbers


@pytest.fixture
def scene() -> Iterator[Scene]:
    with opened() as made:
        yield made


@contextlib.contextmanager
def opened() -> Iterator[Scene]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        proxy = Program("freeze", 0, "127.0.0.1", listener.getsockname()[1])
        with contextlib.closing(proxy):
            yield Scene(proxy, proxy.wait_for("listening")["port"], listener)
            proxy.tell("quit")
            assert proxy.wait() == 0


def is_silent(end: socket.socket) -> bool:
    """Whether nothing comes, neither an octet nor an end."""
    return not select.select([end], [], [], SILENT_S)[0]


def test_everything_passes_both_ways_and_an_end_is_the_same_end_on_the_other_side(scene: Scene) -> None:
    client, server = scene.connect()
    with client, server:
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        server.sendall(b"answer")
        assert client.recv(100) == b"answer"
        client.shutdown(socket.SHUT_WR)
        assert server.recv(100) == b""
        server.sendall(b"after the half-close")
        assert client.recv(100) == b"after the half-close"
        server.close()
        assert client.recv(100) == b""
        closed = scene.proxy.wait_for("closed")

    assert (closed["connection"], closed["forward"], closed["return"]) == (1, 8, 26)
    assert [one["side"] for one in scene.proxy.named("ended")] == ["client", "server"]
    assert scene.proxy.named("error") == []


def test_a_flood_arrives_whole_although_its_reader_is_slow(scene: Scene) -> None:
    client, server = scene.connect()
    flood = bytes(range(256)) * 40_000
    sender = threading.Thread(target=client.sendall, args=(flood,))
    with client, server:
        sender.start()
        until(lambda: not is_silent(server))
        got = b""
        while len(got) < len(flood):
            got += server.recv(1 << 20)
        sender.join(TIMEOUT_S)

    assert got == flood


def test_a_frozen_connection_passes_nothing_and_later_everything(scene: Scene) -> None:
    client, server = scene.connect()
    with client, server:
        client.sendall(b"before ")
        assert server.recv(100) == b"before "
        assert scene.tell("freeze", "frozen") == [1]
        client.sendall(b"in the ")
        server.sendall(b"frost")
        assert is_silent(server)
        assert is_silent(client)
        assert scene.tell("unfreeze", "unfrozen") == [1]
        assert server.recv(100) == b"in the "
        assert client.recv(100) == b"frost"


def test_new_connections_pass_while_the_old_one_is_frozen(scene: Scene) -> None:
    old, old_server = scene.connect()
    scene.tell("freeze", "frozen")
    new, new_server = scene.connect()
    with old, old_server, new, new_server:
        new.sendall(b"still there?")
        assert new_server.recv(100) == b"still there?"
        old.sendall(b"lost?")
        assert is_silent(old_server)
        assert scene.tell("freeze", "frozen", 2) == [2], "the old one is frozen already"
        assert scene.tell("unfreeze", "unfrozen") == [1, 2]
        assert old_server.recv(100) == b"lost?"


def test_a_reset_is_a_reset_on_the_other_side_and_waits_in_the_frost(scene: Scene) -> None:
    client, server = scene.connect()
    with server:
        scene.tell("freeze", "frozen")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert is_silent(server)
        scene.tell("unfreeze", "unfrozen")
        with pytest.raises(ConnectionResetError):
            server.recv(100)
    error = scene.proxy.wait_for("error")

    assert (error["errno"], error["side"], error["during"]) == ("ECONNRESET", "client", "relay")


def test_a_close_in_the_frost_arrives_behind_what_waited(scene: Scene) -> None:
    client, server = scene.connect()
    with server:
        scene.tell("freeze", "frozen")
        client.sendall(b"last words")
        client.close()
        assert is_silent(server)
        scene.tell("unfreeze", "unfrozen")
        assert server.recv(100) == b"last words"
        assert server.recv(100) == b""


def test_a_server_that_is_not_there_is_a_reset_for_the_client(scene: Scene) -> None:
    scene.listener.close()
    with (
        # It may come before the read, and before connect(2) has returned.
        contextlib.suppress(ConnectionResetError),
        socket.create_connection(("127.0.0.1", scene.port), TIMEOUT_S) as client,
    ):
        assert client.recv(100) == b"", "a reset, or one that came before the read"
    error = scene.proxy.wait_for("error")

    assert (error["errno"], error["side"], error["during"]) == ("ECONNREFUSED", "server", "connect")


def test_an_unknown_command_changes_nothing(scene: Scene) -> None:
    client, server = scene.connect()
    with client, server:
        scene.proxy.tell("thaw")
        client.sendall(b"x")
        assert server.recv(100) == b"x"


@isolated
def test_both_kernels_acknowledge_into_a_frozen_connection_until_the_window_is_closed() -> None:
    with opened() as scene:
        client, server = scene.connect()
        local, remote = Endpoint(*client.getsockname()), Endpoint(*client.getpeername())
        scene.tell("freeze", "frozen")
        client.sendall(b"small")
        until(lambda: (seen := query(local, remote)) is not None and seen.unacked == 0)
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(1 << 16))
        until(lambda: (seen := query(local, remote)) is not None and seen.timer is Timer.PROBE)
        seen = query(local, remote)

        assert seen is not None
        assert seen.state is TcpState.ESTABLISHED
        assert seen.retransmits == 0
        client.close()
        server.close()
