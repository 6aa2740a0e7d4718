"""Requests to an ASGI application in this process."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Asking:
    """A client.

    Args:
        app: Who answers. What it raises after an answer went out is passed over, as a server does that writes it to its
            log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def put(self, path: str) -> Answer:
        return self.request("PUT", path)

    def delete(self, path: str) -> Answer:
        return self.request("DELETE", path)

    def post(
        self,
        path: str,
        *,
        json: Any = ...,
        content: bytes | Iterable[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        return self.request("POST", path, json=json, content=content, headers=headers)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = ...,
        content: bytes | Iterable[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        named = {"host": "localhost", **(headers or {})}
        if json is not ...:
            content, named["content-type"] = _dumped(json), "application/json"
        chunks = [content] if isinstance(content, bytes) else list(content)
        if isinstance(content, bytes) and content:
            named["content-length"] = str(len(content))
        return asyncio.run(self._ask(method, path, chunks, named))

    async def _ask(self, method: str, path: str, chunks: list[bytes], headers: Mapping[str, str]) -> Answer:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": None,
            "server": None,
        }
        waiting, answered = list(chunks), list[Message]()

        async def receive() -> Message:
            if not waiting:
                # A client that stays until it has its answer.
                await asyncio.sleep(3600)
            body = waiting.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(waiting)}

        async def send(message: Message) -> None:
            answered.append(message)

        try:
            await self._app(scope, receive, send)
        except Exception:
            if not answered:
                raise
        start, *rest = answered
        return Answer(
            status_code=start["status"],
            headers={name.decode(): value.decode() for name, value in start["headers"]},
            content=b"".join(message.get("body", b"") for message in rest),
        )


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
