"""The first request of a server is its own: what is built at a first request is built then, and not in a user's cut."""

import json
from typing import Any

from starlette.types import ASGIApp, Message

_ORDER = {"flow": {"client": "192.0.2.254:1", "server": "198.51.100.254:1"}}
"""A flow that nobody has: the whole way of a cut but the cut."""


async def request(app: ASGIApp, token: str | None) -> None:
    """Ask to cut a flow that does not exist."""
    body = json.dumps(_ORDER).encode()
    authorization = [] if token is None else [(b"authorization", b"Bearer " + token.encode())]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/faults",
        "raw_path": b"/faults",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *authorization],
        "client": None,
        "server": None,
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: Message) -> None:
        return

    await app(scope, receive, send)
