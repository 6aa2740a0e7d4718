"""The same client on an unmodified google-genai: a link whose connection that package makes and reads.

Everything goes by public names of google-genai 2.25.0 and 3.6.1. What they lack (a ping, an abort, when something was
heard) comes from the connection itself: ``async_client_args`` is handed on to ``websockets.connect``, whose
``create_connection`` makes a ``TappedConnection``. No private attribute of either package is used.

What a client has to know of the package: ``receive()`` ends with each turn and has to be called again; a close with any
code is an ``APIError`` whose ``code`` is the close code, 1006 where none came; an HTTP refusal is websockets' own
exception; a message that it does not know is a ``TypeError``, and the connection goes on; leaving ``connect()`` waits
for the close handshake, so that nobody leaves it before the connection is over.
"""

import asyncio
import contextlib
import contextvars
import os
import ssl
from collections.abc import Callable
from typing import Any

from google import genai
from google.genai import errors, types
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from lab.core.errors import UsageError
from lab.live.client.genai_messages import config_of, put, server_message
from lab.live.client.link import Address, Ears, Failed, Link, Phase, Refused
from lab.live.client.options import Options
from lab.live.client.outcomes import CONNECT_OPTIONS, outcome_of
from lab.live.client.tap import TappedConnection
from lab.live.client.tapped_link import TappedLink
from lab.live.protocol.messages import ServerMessage, Setup, SetupComplete

ABNORMAL = 1006
"""RFC 6455 section 7.1.5: no close frame came."""

BASE_URL = "GOOGLE_GEMINI_BASE_URL"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Environment variables that the package reads."""

LOCAL_KEY = "local"
"""For a server that asks for none: the package wants one."""

WITH_TLS = "--url https://127.0.0.1:8766 --ca FILE, the server's ca.pem; lab live serve prints both"

_dialling: "contextvars.ContextVar[GenaiLink]" = contextvars.ContextVar("dialling")
"""The link for which this task makes a connection: one client of the package serves all links."""


def genai_dialer(options: Options, trusted: ssl.SSLContext | None = None) -> Callable[[Ears], Link]:
    """Makes links on google-genai.

    The address is that of ``GOOGLE_GEMINI_BASE_URL`` where it is set, so that the environment alone redirects; else the
    options'. The key is the environment's, else one that only a local server takes.

    Args:
        options: The assistant's.
        trusted: What to trust; None: what the package does, that of ``SSL_CERT_FILE`` first.

    Raises:
        UsageError: the address is one without TLS.
    """
    base_url = os.environ.get(BASE_URL) or options.url
    if base_url.startswith("ws:"):
        raise UsageError(f"google-genai speaks TLS alone, and {base_url} has none.", fix=WITH_TLS)
    arguments = {**CONNECT_OPTIONS, "create_connection": lambda *given, **named: _dialling.get().make(*given, **named)}
    if trusted is not None:
        arguments["ssl"] = trusted
    client = genai.Client(
        api_key=next((key for name in KEYS if (key := os.environ.get(name))), LOCAL_KEY),
        http_options=types.HttpOptions(
            base_url=base_url,
            async_client_args=arguments,
        ),
    )
    return lambda ears: GenaiLink(client, ears)


class GenaiLink(TappedLink):
    """A connection of google-genai's.

    Args:
        client: The package's.
        ears: Who is told what it notices.
    """

    def __init__(self, client: genai.Client, ears: Ears) -> None:
        super().__init__(ears)
        self._client = client
        self._context: contextlib.AbstractAsyncContextManager[Any] | None = None

    @property
    def phase(self) -> Phase:
        """How far it has come; UPGRADE until the package says that the setup was answered."""
        if self._phase is Phase.UPGRADE and self._made is not None and self._made.state is not State.CONNECTING:
            return Phase.SETUP
        return self._phase

    async def connect(self, setup: Setup) -> None:
        """Connect, send the setup, wait for its answer. See ``Link``."""
        _dialling.set(self)
        self._begin()
        try:
            self._context = self._client.aio.live.connect(model=setup.model, config=config_of(setup))
            session = await self._entered(self._context)
        except BaseException as error:
            self._come_to_nothing()
            if (meant := _outcome_of(error, self.phase)) is None:
                raise
            raise meant from error
        made = self._made
        assert made is not None
        self._phase, self._connecting = Phase.OPEN, None
        self._inbox.put(ServerMessage(setup_complete=SetupComplete(session.session_id)))
        loop = asyncio.get_running_loop()
        writing = self._outbox.write(lambda message: put(session, message), made)
        self._tasks = [loop.create_task(self._read(session, made)), loop.create_task(writing)]

    def make(self, *arguments: Any, **options: Any) -> TappedConnection:
        """The connection, for websockets."""
        self._made = TappedConnection(self, *arguments, **options)
        return self._made

    def connected(self, local: Address, remote: Address) -> None:
        """TCP and TLS stand."""
        self._phase = Phase.UPGRADE
        self._ears.connected(local, remote)

    def heard(self, at: float) -> None:
        """Octets came."""
        self._ears.heard(at)

    def pong(self, sent_at: float, at: float) -> None:
        """A pong came."""
        self._ears.pong(sent_at, at)

    async def _entered(self, context: contextlib.AbstractAsyncContextManager[Any]) -> Any:
        """The session; a cancellation aborts before the package waits for a close handshake."""
        entering = asyncio.ensure_future(context.__aenter__())
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:
            if self._made is not None and self._made.stands:
                self._made.abort()
            else:
                entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            raise

    async def _read(self, session: Any, made: TappedConnection) -> None:
        while made.state is not State.CLOSED:
            try:
                async for message in session.receive():
                    self._inbox.put(server_message(message))
            except (errors.APIError, ConnectionClosed, TypeError, ValueError):
                continue  # Over, or a message that the package does not know; the connection's state says which.
        self._ending = made.ending
        self._inbox.end()
        assert self._context is not None
        with contextlib.suppress(ConnectionClosed):
            await self._context.__aexit__(None, None, None)


def _outcome_of(error: BaseException, phase: Phase) -> Refused | Failed | None:
    """As for the other link, and the package's own exceptions."""
    match error:
        case errors.APIError() if error.code == ABNORMAL:
            return Failed("the connection ended without a close frame", phase)
        case errors.APIError():
            return Refused(error.code, str(error.details), phase)
        case ValueError() | TypeError():
            return Failed(f"google-genai: {error}", phase)
    return outcome_of(error, phase)
