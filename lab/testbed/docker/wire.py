"""The engine's HTTP API on its Unix socket, with nothing but the standard library.

The reaper and its stand-in use it: the SDK would cost them 0.15 s at their start and twice the memory while they wait.
"""

import contextlib
import http
import http.client
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

TIMEOUT_S = 10.0
"""For one answer. Whoever removes things asks again."""


class Refused(Exception):
    """The engine answered with an error.

    Args:
        status: HTTP status.
        message: The engine's words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Api:
    """An engine's API; each call is a connection of its own, so that any number of threads may call."""

    socket: Path

    version: str
    """Of the API, as ``1.41``."""

    timeout_s: float = TIMEOUT_S

    def get(self, *path: str, **query: object) -> Any:
        """The answer's object."""
        return self._call("GET", path, query)

    def post(self, *path: str, body: object = None, **query: object) -> Any:
        """The answer's object, None where there is none."""
        return self._call("POST", path, query, body)

    def delete(self, *path: str, **query: object) -> None:
        """Delete it."""
        self._call("DELETE", path, query)

    def attach(self, container: str) -> "_Connection":
        """What a container says from now on, to be read from the connection's ``sock``; the caller closes it."""
        connection = self._connection()
        try:
            target = self._target(("containers", container, "attach"), {"stream": 1, "stdout": 1, "stderr": 1})
            connection.request("POST", target, headers={"Connection": "Upgrade", "Upgrade": "tcp"})
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
                raise _refused(answer)
        except BaseException:
            connection.close()
            raise
        return connection

    def events(self, **query: object) -> "Events":
        """What happens on the engine, one object each; the caller closes it."""
        connection = self._connection()
        try:
            connection.request("GET", self._target(("events",), query))
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise _refused(answer)
        except BaseException:
            connection.close()
            raise
        return Events(connection, answer)

    def _call(self, method: str, path: Iterable[str], query: Mapping[str, object], body: object = None) -> Any:
        connection = self._connection()
        try:
            headers = {} if body is None else {"Content-Type": "application/json"}
            content = None if body is None else json.dumps(body)
            connection.request(method, self._target(path, query), content, headers)
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise _refused(answer)
            said = answer.read()
            return json.loads(said) if said.startswith((b"{", b"[")) else None
        finally:
            connection.close()

    def _connection(self) -> "_Connection":
        return _Connection(self.socket, self.timeout_s)

    def _target(self, path: Iterable[str], query: Mapping[str, object]) -> str:
        place = "/".join(quote(part, safe="") for part in (f"v{self.version}", *path))
        words = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in query.items()}
        return f"/{place}?{urlencode(words)}" if words else f"/{place}"


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """To the engine's socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Events:
    """A list that the engine goes on with, until ``hush``, its own end, or the time that was asked for.

    Args:
        connection: Read from here on.
        answer: Its lines are the objects.
    """

    def __init__(self, connection: "_Connection", answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        # There may be hours between two; how long to wait for the first byte has been said.
        self._socket = connection.sock
        self._socket.settimeout(None)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each as it comes."""
        while line := self._answer.readline():
            yield json.loads(line)

    def hush(self) -> None:
        """Wake who waits for the next one, from another thread: there is none."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._answer.close()
        self._connection.close()


def _refused(answer: http.client.HTTPResponse) -> Refused:
    said = answer.read().decode("utf-8", "replace")
    try:
        return Refused(answer.status, str(json.loads(said)["message"]))
    except (ValueError, KeyError, TypeError):
        return Refused(answer.status, said.strip())
