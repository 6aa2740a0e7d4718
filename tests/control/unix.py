"""HTTP over a Unix socket, with the standard library alone."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class UnixConnection(http.client.HTTPConnection):
    """To a path instead of a host."""

    def __init__(self, path: Path, timeout_s: float = 30.0) -> None:
        super().__init__("lab", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    """Status and body; JSON where it is, else octets."""
    connection = UnixConnection(path)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, target, content, {} if body is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        is_json = "json" in answer.headers["Content-Type"]
        return answer.status, json.loads(data) if is_json else data
    finally:
        connection.close()


def events(path: Path, last_id: str | None = None, timeout_s: float = 10.0) -> Iterator[dict[str, Any]]:
    """Events as they come, until the stream ends: ``id``, ``event``, and ``data`` as an object."""
    connection = UnixConnection(path, timeout_s)
    try:
        connection.request("GET", "/events", headers={} if last_id is None else {"Last-Event-ID": last_id})
        event: dict[str, Any] = {}
        for line in connection.getresponse():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in ("id", "event"):
                event[name] = value
            elif name == "data":
                event["data"] = json.loads(value)
            elif not name and event:
                yield event
                event = {}
    finally:
        connection.close()
