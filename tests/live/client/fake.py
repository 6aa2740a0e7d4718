"""A session server of a few rules, for tests of the client alone: each test sets the rule that it is about."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from lab.live.protocol import wire
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    Content,
    FunctionCall,
    FunctionResponse,
    Part,
    RealtimeInput,
    ServerContent,
    ServerMessage,
    SessionResumptionUpdate,
    Setup,
    SetupComplete,
    ToolCall,
    ToolResponse,
    Transcription,
)

SOUND = Content("model", (Part(inline_data=Blob(bytes(4800), "audio/pcm;rate=24000")),))
"""A tenth of a second."""


@dataclass
class FakeServer:
    """What it does, and what it saw."""

    settle_s: float = 0.0
    """A resume is refused so long after the loss of the former connection."""

    locked: bool = False
    """Every resume is refused."""

    announces: bool = True
    """Says what a tool answered."""

    hangs_in_setup: bool = False
    status: int | None = None
    """Refuses the upgrade with this HTTP status."""

    reissues: bool = False
    """Calls again with a new id when a history comes."""

    setups: list[Setup] = field(default_factory=list)
    setup_at: list[float] = field(default_factory=list)
    responses: list[FunctionResponse] = field(default_factory=list)
    histories: list[ClientContent] = field(default_factory=list)
    audio_bytes: int = 0
    closes: list[int | None] = field(default_factory=list)
    connections: list[ServerConnection] = field(default_factory=list)
    url: str = ""
    last_response: str = ""
    _gone_at: float = -1e9
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def handle(self, connection: ServerConnection) -> None:
        setup = wire.parse_client(await connection.recv())
        assert isinstance(setup, Setup)
        self.setups.append(setup)
        self.setup_at.append(time.monotonic())
        if self.hangs_in_setup:
            await connection.wait_closed()
            return
        resumes = setup.session_resumption is not None and setup.session_resumption.handle is not None
        if resumes and (self.locked or time.monotonic() - self._gone_at < self.settle_s):
            await connection.close(1011, "Internal error encountered.")
            return
        self.connections.append(connection)
        await self.send(ServerMessage(setup_complete=SetupComplete()))
        await self.send(ServerMessage(session_resumption_update=SessionResumptionUpdate("handle-1", True)))
        with contextlib.suppress(ConnectionClosed):
            async for data in connection:
                await self.on_message(wire.parse_client(data))
        self._gone_at = time.monotonic()
        self.closes.append(connection.close_code if connection.close_code != 1006 else None)

    async def on_message(self, message: Any) -> None:
        match message:
            case RealtimeInput(text=str(text)):
                await self.prompted(text)
            case RealtimeInput(audio=Blob() as blob):
                self.audio_bytes += len(blob.data)
            case ClientContent():
                self.histories.append(message)
                await (self.call() if self.reissues else self.speak("Your slot is booked."))
            case ToolResponse():
                self.responses += message.function_responses
                self.last_response = str(message.function_responses[-1].response.get("status"))
                if self.announces:
                    await self.speak(f"It is {self.last_response}.")

    async def prompted(self, text: str) -> None:
        if "Book" in text:
            await self.call()
        elif self.last_response == "booked":
            await self.speak("Yes, your slot is booked.")
        else:
            await self.speak("I'm booking it for you now.")

    async def call(self, number: int | None = None) -> None:
        name = f"call-{next(self._ids) if number is None else number}"
        call = FunctionCall(name, "book_slot", {"slot": "tomorrow 3pm"})
        await self.send(ServerMessage(tool_call=ToolCall((call,))))

    async def speak(self, text: str) -> None:
        said = ServerContent(SOUND, output_transcription=Transcription(text))
        await self.send(ServerMessage(server_content=said))
        await self.send(ServerMessage(server_content=ServerContent(generation_complete=True)))
        await self.send(ServerMessage(server_content=ServerContent(turn_complete=True)))

    async def send(self, message: ServerMessage) -> None:
        await self.connections[-1].send(wire.encode(message))


@contextlib.asynccontextmanager
async def serving(fake: FakeServer, **options: Any) -> AsyncIterator[FakeServer]:
    """The server on loopback, until the block ends."""

    def check(connection: ServerConnection, _: Any) -> Any:
        return None if fake.status is None else connection.respond(fake.status, "no")

    server: Server = await serve(fake.handle, "127.0.0.1", 0, ping_interval=None, process_request=check, **options)
    try:
        port = next(iter(server.sockets)).getsockname()[1]
        fake.url = f"ws://127.0.0.1:{port}"
        yield fake
    finally:
        server.close(close_connections=False)
        for connection in server.connections:
            connection.transport.abort()
        await asyncio.wait_for(server.wait_closed(), 5)
