"""Who may ask: decided before anything of the application runs.

On a Unix socket the file's mode decides (0600). On TCP everything but ``/healthz`` takes the token, and the request
must be meant for this host: a web page that a browser on this machine shows could else reach the controller by a name
that it makes resolve to the loopback address, or by a plain form. A page of another origin is refused whatever it has.
"""

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.control.problems import problem

OPEN = frozenset({"/healthz"})
"""Paths that take no token."""

PAGES = frozenset({"/docs", "/openapi.json"})
"""Read by people in browsers, which ask for a name and a password: the token is the password, the name is anybody's.
Nothing else takes it that way, since a browser would go on sending it."""

BODY_BYTES = 64 * 1024

NAMES = ("localhost", "router")


class Gate:
    """ASGI middleware.

    Args:
        app: What is guarded.
        token: For TCP; None on a Unix socket, where nothing but the size is checked.
        names: Further host names that the controller is reached by; addresses are always fine, since a name is what
            an attacker would need.
    """

    def __init__(self, app: ASGIApp, token: str | None, names: Iterable[str] = ()) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._names = frozenset(name.lower().rstrip(".") for name in (*NAMES, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["path"], Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._limited(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        if self._token is not None:
            if not self._is_ours(headers.get("host", "")):
                return problem(
                    421,
                    "unknown-host",
                    f"An address or one of {', '.join(sorted(self._names))} was expected as Host.",
                    fix="start the controller with --name NAME to let it be called that",
                )
            origin = headers.get("origin")
            if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
                return problem(403, "foreign-origin", "Web pages of other origins may not control this router.")
            if path not in OPEN and not self._has_token(path, headers.get("authorization", "")):
                return _unauthorized(path)
        length = headers.get("content-length", "0")
        return _too_large() if not length.isdecimal() or int(length) > BODY_BYTES else None

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif ":" in name:
            name = name.rpartition(":")[0]
        if name.rstrip(".") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _has_token(self, path: str, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self._matches(given.strip().encode("latin-1"))
        if scheme.lower() == "basic" and path in PAGES:
            try:
                _, _, password = base64.b64decode(given, validate=True).partition(b":")
            except (binascii.Error, ValueError):
                return False
            return self._matches(password)
        return False

    def _matches(self, given: bytes) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given, self._token)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, but for a body that grows beyond the limit without having said so."""
        seen, answered = 0, False

        async def receive_some() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > BODY_BYTES:
                raise _TooLarge
            return message

        async def watch(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, receive_some, watch)
        except _TooLarge:
            if answered:
                raise
            await _too_large()(scope, receive, send)


class _TooLarge(BaseException):
    """Not an Exception: the application would answer it."""


def _too_large() -> Response:
    return problem(413, "too-large", f"At most {BODY_BYTES} octets were expected, with their number in Content-Length.")


def _unauthorized(path: str) -> Response:
    scheme = "Basic" if path in PAGES else "Bearer"
    return problem(
        401,
        "unauthorized",
        "The controller's token was expected.",
        fix='send "Authorization: Bearer TOKEN"; it is LAB_TOKEN of the controller, or in its log',
        headers={"WWW-Authenticate": f'{scheme} realm="blackhole-lab"'},
    )
