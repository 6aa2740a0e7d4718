"""The messages of the Live protocol, as values; ``wire`` makes JSON of them.

Field names are the protocol's, in Python's spelling (``new_handle`` for ``newHandle``). What a message carries beyond
them is kept as it came, in ``extra``. Octets are decoded; instants and durations are seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
"""An object as it stood in the message."""

AUDIO_RATE_IN = 16_000
"""Samples per second that a server takes (``audio/pcm;rate=16000``), 16 bits each, one channel, little-endian."""

AUDIO_RATE_OUT = 24_000
"""Samples per second that it sends."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Octets with their type."""

    data: bytes
    mime_type: str
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a turn: text or octets."""

    text: str | None = None
    inline_data: Blob | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """A turn, or a part of one."""

    role: str | None = None
    """user or model."""

    parts: tuple[Part, ...] = ()
    extra: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All text of its parts."""
        return "".join(part.text for part in self.parts if part.text is not None)


# Client to server: exactly one of these per frame.


@dataclass(frozen=True, slots=True)
class SessionResumption:
    """Asks for handles, and with one for the session that it names."""

    handle: str | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message of a connection, once."""

    model: str
    system_instruction: Content | None = None
    tools: tuple[Json, ...] = ()
    """``functionDeclarations`` with name, description, parameters; the protocol's names in camel case, as in the two
    configurations below, whichever spelling came. A schema's own property names stay."""

    session_resumption: SessionResumption | None = None
    """None where the client wants no handles."""

    input_audio_transcription: bool = False
    output_audio_transcription: bool = False
    generation_config: Json = field(default_factory=dict)
    realtime_input_config: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)
    """Every other field that the protocol knows, as it stood."""


@dataclass(frozen=True, slots=True)
class ClientContent:
    """Turns of text, and whether the model is to answer now."""

    turns: tuple[Content, ...] = ()
    turn_complete: bool = False
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RealtimeInput:
    """A piece of what is said, seen or typed; one of the first three, or a mark."""

    audio: Blob | None = None
    video: Blob | None = None
    text: str | None = None
    activity_start: bool = False
    activity_end: bool = False
    audio_stream_end: bool = False
    media_chunks: tuple[Blob, ...] = ()
    """The older form of ``audio`` and ``video``."""

    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    """What a tool answered."""

    id: str | None
    name: str
    response: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)
    """``scheduling``, ``willContinue``, ``parts``."""


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """Answers to calls, by their ids."""

    function_responses: tuple[FunctionResponse, ...] = ()
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextUpdate:
    """New instructions or tools in mid-session."""

    system_instruction: Content | None = None
    tools: tuple[Json, ...] = ()
    extra: Json = field(default_factory=dict)


ClientMessage = Setup | ClientContent | RealtimeInput | ToolResponse | ContextUpdate


# Server to client: several of these may share a frame.


@dataclass(frozen=True, slots=True)
class SetupComplete:
    """The connection is attached to a session."""

    session_id: str | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionResumptionUpdate:
    """The name by which the session can be resumed."""

    new_handle: str | None = None
    resumable: bool = False
    last_consumed_client_message_index: int | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transcription:
    """Text of what was heard or said."""

    text: str = ""
    finished: bool = False
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerContent:
    """A piece of the model's turn, and how far the turn is."""

    model_turn: Content | None = None
    generation_complete: bool = False
    turn_complete: bool = False
    interrupted: bool = False
    input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A tool that the model wants called."""

    id: str | None
    name: str
    args: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Calls that await a response."""

    function_calls: tuple[FunctionCall, ...] = ()
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCallCancellation:
    """Calls whose response is no longer wanted."""

    ids: tuple[str, ...] = ()
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GoAway:
    """The server will end this connection."""

    time_left_s: float | None = None
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerMessage:
    """One frame from the server."""

    setup_complete: SetupComplete | None = None
    session_resumption_update: SessionResumptionUpdate | None = None
    server_content: ServerContent | None = None
    tool_call: ToolCall | None = None
    tool_call_cancellation: ToolCallCancellation | None = None
    go_away: GoAway | None = None
    usage_metadata: Json | None = None
    voice_activity: Json | None = None
    extra: Json = field(default_factory=dict)
    """Top-level keys that nobody knows, as they stood."""
