"""A relay alone, its events handed to it one by one; ``test_freeze.py`` has the proxy around it."""

import select
import socket
from typing import Any

import pytest

from lab.programs import relay
from lab.programs.relay import Relay

TIMEOUT_S = 5.0


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname(), TIMEOUT_S)
        return near, listener.accept()[0]


def reset(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    end.close()


def test_what_cannot_be_written_is_the_fault_of_the_side_that_it_was_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever side's event comes first: here that of the side which still stands, and has said something."""
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(relay, "say", lambda event, **detail: said.append({"event": event, **detail}))
    client, client_end = pair()
    server, server_end = pair()
    made = Relay(1, client_end, server_end, connecting=False)
    with client:
        client.sendall(b"too late")
        assert select.select([client_end], [], [], TIMEOUT_S)[0]
        reset(server)
        assert select.select([server_end], [], [], TIMEOUT_S)[0]
        made.on_event(client_end.fileno(), select.POLLIN)

        assert (said[0]["event"], said[0]["side"], said[0]["errno"]) == ("error", "server", "ECONNRESET")
        assert said[1] == {"event": "closed", "connection": 1, "forward": 0, "return": 0}
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert made.over
