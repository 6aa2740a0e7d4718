"""The client session that an application owns."""

import weakref
from collections.abc import Awaitable, Sequence
from dataclasses import replace

from lab.core.errors import UsageError
from lab.live.lifecycle import endings
from lab.live.lifecycle.service import Service
from lab.live.lifecycle.stream import Stream
from lab.live.lifecycle.variant import LAB, Variant
from lab.live.lifecycle.wire import MakeWire
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    ClientMessage,
    Content,
    FunctionResponse,
    RealtimeInput,
    ServerMessage,
    SessionResumption,
    Setup,
    ToolResponse,
)


class LiveSession:
    """A session with a model. Hold it for as long as you want it: released, it closes.

    ``close`` is not for ever (``resume`` opens again), and may be called twice. After it the responses give nothing
    more, and stay open. They end within 5 s of the session's release, which is when the last reference to it goes,
    whether or not the event loop runs. Holding the responses alone, or waiting for one of its methods, keeps nothing.

    Methods are used in the event loop that it was connected in; it may be released in any thread.

    Args:
        make: Makes its connections, such as ``lambda: WebSocketWire(url)``.
        setup: The first message of each.
        variant: Whose rules; the lab's unless the defect itself is to be seen.

    Raises:
        UsageError: the setup is none.
    """

    def __init__(self, make: MakeWire, setup: Setup, variant: Variant = LAB) -> None:
        if not isinstance(setup, Setup):
            raise UsageError(f"A session begins with a Setup, not with {_named(setup)}.", fix='Setup("models/NAME").')
        self._setup = setup
        self._service = Service(make, variant)
        if variant.closes_on_release:
            weakref.finalize(self, self._service.release)

    @property
    def responses(self) -> Stream[ServerMessage]:
        """What the server says, the setup's answer included."""
        return self._service.responses

    @property
    def is_closed(self) -> bool:
        """Whether it has no connection that is set up."""
        return not self._service.connected

    @property
    def handle(self) -> str | None:
        """By which it can be resumed; None where the server gave no name."""
        return self._service.handle

    # No coroutine function below: a frame of one would hold the session while it waits.

    def connect(self) -> Awaitable[None]:
        """Connect.

        Raises:
            SetupRefused: the server said no.
            ConnectionLost: the connection ended before an answer.
            ClosedHere: it was closed or released meanwhile.
            SessionError: it is connected.
            OSError: nobody listens, or the server's certificate is not trusted.
            UsageError: the URL is none of a WebSocket.
        """
        return self._service.connect(self._setup)

    def resume(self, handle: str | None = None) -> Awaitable[None]:
        """Connect again to the same session, after closing the connection that there is.

        A session that was closed a moment ago is still locked at its server: refused for that, it is tried again until
        3 s after the close.

        Args:
            handle: Its name; the latest that the server gave if None.

        Raises:
            NotConnected: there is no name to resume by.
            SessionError: as ``connect``; who reads is told the same, and who sends.
        """
        named = handle or self._service.handle
        return _resume(self._service, self._setup, named)

    def close(self) -> Awaitable[None]:
        """End the connection; done when the server has answered, or after 2 s without an answer."""
        return self._service.close()

    def send(self, message: ClientMessage) -> Awaitable[None]:
        """Queue a message; done when it is on its way to the kernel.

        Raises:
            SessionError: how the connection ended, or that there never was one.
            UsageError: it is no message; at the call.
        """
        if not isinstance(message, ClientMessage):
            raise UsageError(f"What is sent is a message, not {_named(message)}.", fix="send_text() takes text.")
        return self._service.send(message)

    def send_text(self, text: str) -> Awaitable[None]:
        """Queue text, as typed by the user. Raises as ``send``."""
        return self.send(RealtimeInput(text=text))

    def send_audio(self, pcm: bytes) -> Awaitable[None]:
        """Queue speech: 16 kHz, 16 bits, one channel. Raises as ``send``."""
        return self.send(RealtimeInput(audio=Blob(pcm, "audio/pcm;rate=16000")))

    def send_content(self, turns: Sequence[Content], *, turn_complete: bool = True) -> Awaitable[None]:
        """Queue turns of text. Raises as ``send``."""
        return self.send(ClientContent(tuple(turns), turn_complete))

    def send_tool_responses(self, responses: Sequence[FunctionResponse]) -> Awaitable[None]:
        """Queue what tools answered. Raises as ``send``."""
        return self.send(ToolResponse(tuple(responses)))


def _named(what: object) -> str:
    return "None" if what is None else f"a value of type {type(what).__name__}"


async def _resume(service: Service, setup: Setup, handle: str | None) -> None:
    if handle is None:
        raise endings.unnamed(asked=setup.session_resumption is not None)
    await service.close()
    await service.connect(replace(setup, session_resumption=SessionResumption(handle)))
