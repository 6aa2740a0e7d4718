"""What the programs of this folder have in common: google-genai as it comes, and one JSON line per event.

They run where google-genai is installed and nothing of the lab is, with the SDK's own defaults. Where the session
server is, they learn from SSL_CERT_FILE and GOOGLE_GEMINI_BASE_URL alone. The SDK has no public way to abort a
connection or to learn its addresses; for these two they look into its session.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from google import genai
from google.genai import errors, types

MODEL = "gemini-3.8-live"

BOOK_SLOT = {
    "name": "book_slot",
    "description": "Books a slot.",
    "parameters": {"type": "OBJECT", "properties": {"slot": {"type": "STRING"}}, "required": ["slot"]},
}

BOOKED = {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}

REQUEST = "Book me the 3pm slot tomorrow, please."
QUESTION = "Did you book it?"


def say(event: str, **detail: object) -> None:
    """Print one event."""
    print(json.dumps({"at": time.monotonic(), "event": event, **detail}), flush=True)


def told(line: str) -> None:
    """Wait until whoever runs the program has written this line."""
    got = sys.stdin.readline().strip()
    assert got == line, got


class Conversation:
    """A session, with all that its server says printed."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.handle: str | None = None
        self._said = ""
        self._audio = 0
        self._mime_types: set[str] = set()

    async def until(self, event: str, timeout_s: float = 30.0) -> dict[str, Any]:
        """Read on until an event of this kind comes; its details."""
        async with asyncio.timeout(timeout_s):
            while True:
                # It ends with every turn: what comes between two turns is the next call's (python-genai issue 2527).
                async for message in self.session.receive():
                    found = [detail for name, detail in self.told_in(message) if name == event]
                    if found:
                        return found[0]

    async def answer_to(self, text: str) -> str:
        """What the model says to this."""
        turn = {"role": "user", "parts": [{"text": text}]}
        await self.session.send_client_content(turns=turn, turn_complete=True)
        said: str = (await self.until("turn"))["said"]
        return said

    async def respond(self, call: dict[str, Any]) -> None:
        """Send the booking's result."""
        response = types.FunctionResponse(id=call["id"], name=call["name"], response=BOOKED)
        await self.session.send_tool_response(function_responses=[response])
        say("result_sent", id=call["id"])

    def abort(self) -> None:
        """End the TCP connection without a close frame, as a program does that is killed."""
        self.session._ws.transport.abort()
        say("aborted")

    def told_in(self, message: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """What a message says, printed: events and their details."""
        for name, detail in self._events(message):
            say(name, **detail)
            yield name, detail

    def _events(self, message: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        if update := message.session_resumption_update:
            self.handle = update.new_handle or self.handle
            yield "handle", {"handle": update.new_handle, "resumable": update.resumable}
        for call in message.tool_call.function_calls or [] if message.tool_call else []:
            yield "tool_call", {"id": call.id, "name": call.name, "args": call.args}
        if message.tool_call_cancellation:
            yield "cancelled", {"ids": message.tool_call_cancellation.ids}
        if message.server_content:
            yield from self._content(message.server_content)

    def _content(self, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        if content.input_transcription and content.input_transcription.text:
            yield "heard", {"text": content.input_transcription.text}
        for part in content.model_turn.parts or [] if content.model_turn else []:
            if part.inline_data:
                if not self._audio:
                    yield "audio_first", {"mime_type": part.inline_data.mime_type}
                self._audio += len(part.inline_data.data)
        if content.output_transcription:
            self._said += content.output_transcription.text or ""
        if content.turn_complete:
            yield "turn", {"said": self._said.strip(), "audio_octets": self._audio}
            self._said, self._audio = "", 0


@contextlib.asynccontextmanager
async def connected(handle: str | None = None, **options: object) -> AsyncIterator[Conversation]:
    """A conversation on a connection of its own; with a handle, the one that it names.

    Args:
        handle: Of a session that is there already.
        options: For the SDK's WebSocket; its own where there are none.
    """
    config = types.LiveConnectConfig(
        response_modalities=["AUDIO"],
        tools=[{"function_declarations": [BOOK_SLOT]}],
        session_resumption=types.SessionResumptionConfig(handle=handle),
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
    )
    http = types.HttpOptions(async_client_args=options) if options else None
    async with genai.Client(http_options=http).aio.live.connect(model=MODEL, config=config) as session:
        remote = session._ws.remote_address[:2]
        local = session._ws.local_address[:2]
        say("connected", session_id=session.session_id, local=local, remote=remote, release=genai.__version__)
        talk = Conversation(session)
        await talk.until("handle")
        yield talk


async def refused(handle: str) -> bool:
    """Whether an attempt to resume is refused; one that is not is closed again."""
    began = time.monotonic()
    try:
        async with connected(handle):
            return False
    except errors.APIError as error:
        say("refused", code=error.code, reason=error.details, took_s=time.monotonic() - began)
        return True


async def book(talk: Conversation) -> dict[str, Any]:
    """Ask for the slot; the call that the model makes."""
    await talk.session.send_realtime_input(text=REQUEST)
    return await talk.until("tool_call")
