"""Every message's fields, as a table: which JSON each has, and how a message is read and written by it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.live.protocol import errors, messages, names
from lab.live.protocol.scalars import (
    DURATION,
    FREE,
    INT64,
    NAMED,
    OCTETS,
    PRESENCE,
    TEXT,
    TRUTH,
    Codec,
    repeated,
    wrapped,
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    """The dataclass's, which says the unit of a duration as well."""

    snake_name: str
    """The protocol's."""

    json_name: str
    """The spelling that JSON has by default."""

    codec: Codec
    default: Any
    """What it is where it is not in the JSON."""


class Shape:
    """How one kind of message is read and written.

    Args:
        kind: The dataclass; its field ``extra`` takes what the table does not name.
        codecs: Its other fields, by name.
    """

    def __init__(self, kind: type, **codecs: Codec) -> None:
        self._kind = kind
        of_kind = {field.name: field for field in dataclasses.fields(kind)}
        self._fields = tuple(_field(of_kind[name], codec) for name, codec in codecs.items())
        self._by_name = {spelling: field for field in self._fields for spelling in (field.snake_name, field.json_name)}
        self._bare = tuple(field for field in self._fields if _is_bare(of_kind[field.name]))
        """Those that the dataclass has no default for."""
        self.codec = Codec(self.read, self.write)

    def read(self, value: Any, at: str) -> Any:
        """A message from its JSON.

        Raises:
            ProtocolError: a field has another type, or is there twice.
        """
        if not isinstance(value, Mapping):
            raise errors.wrong_type(at, "TYPE_MESSAGE", value)
        found: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, item in value.items():
            field = self._by_name.get(key)
            if field is None:
                extra[key] = item
            elif item is not None:  # null is "not set" in protobuf's JSON
                if field.name in found:
                    raise errors.second_of_one(at, field.snake_name, key)
                found[field.name] = _read_field(field, item, at)
                if field.codec is PRESENCE and item:
                    extra[key] = item  # the fields of a message of which only the presence is read
        for field in self._bare:
            if found.setdefault(field.name, field.default) is _REQUIRED:
                raise errors.missing(f"{at}.{field.name}")
        return self._kind(**found, extra=extra)

    def write(self, message: Any, snake: bool) -> dict[str, Any]:
        """Its JSON: what differs from the default, then ``extra`` as it came."""
        extra: Mapping[str, Any] = message.extra
        out: dict[str, Any] = {}
        for field in self._fields:
            value = getattr(message, field.name)
            if value == field.default or (
                field.codec is PRESENCE and {field.snake_name, field.json_name} & extra.keys()
            ):
                continue
            out[field.snake_name if snake else field.json_name] = field.codec.write(value, snake)
        return out | dict(extra)


_REQUIRED: Any = object()


def _field(field: "dataclasses.Field[Any]", codec: Codec) -> Field:
    name = field.name.removesuffix("_s") if codec is DURATION else field.name
    return Field(field.name, name, names.camel(name), codec, _default(field, codec))


def _default(field: "dataclasses.Field[Any]", codec: Codec) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is not dataclasses.MISSING:
        return field.default
    return _REQUIRED if codec.required else codec.absent


def _is_bare(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _read_field(field: Field, value: Any, at: str) -> Any:
    if isinstance(value, list) and not field.codec.repeated:
        raise errors.not_repeating(field.snake_name, at)
    return field.codec.read(value, f"{at}.{field.snake_name}" if at else field.snake_name)


_NEEDED = dataclasses.replace(TEXT, required=True)
_OPTIONAL = dataclasses.replace(TEXT, absent=None)

_BLOB = Shape(messages.Blob, data=OCTETS, mime_type=TEXT).codec
_PART = Shape(messages.Part, text=TEXT, inline_data=_BLOB).codec
_CONTENT = Shape(messages.Content, role=TEXT, parts=repeated(_PART)).codec
_RESUMPTION = Shape(messages.SessionResumption, handle=TEXT).codec
_RESPONSE = Shape(messages.FunctionResponse, id=_OPTIONAL, name=TEXT, response=FREE).codec
_CALL = Shape(messages.FunctionCall, id=_OPTIONAL, name=TEXT, args=FREE).codec
_SPOKEN = Shape(messages.Transcription, text=TEXT, finished=TRUTH).codec

FROM_CLIENT: Mapping[str, tuple[type, Codec]] = {
    "setup": (
        messages.Setup,
        Shape(
            messages.Setup,
            model=_NEEDED,
            system_instruction=_CONTENT,
            tools=repeated(NAMED),
            session_resumption=_RESUMPTION,
            input_audio_transcription=PRESENCE,
            output_audio_transcription=PRESENCE,
            generation_config=NAMED,
            realtime_input_config=NAMED,
        ).codec,
    ),
    "client_content": (
        messages.ClientContent,
        Shape(messages.ClientContent, turns=repeated(_CONTENT), turn_complete=TRUTH).codec,
    ),
    "realtime_input": (
        messages.RealtimeInput,
        Shape(
            messages.RealtimeInput,
            audio=_BLOB,
            video=_BLOB,
            text=TEXT,
            activity_start=PRESENCE,
            activity_end=PRESENCE,
            audio_stream_end=TRUTH,
            media_chunks=repeated(_BLOB),
        ).codec,
    ),
    "tool_response": (
        messages.ToolResponse,
        Shape(messages.ToolResponse, function_responses=repeated(_RESPONSE)).codec,
    ),
    "context_update": (
        messages.ContextUpdate,
        Shape(messages.ContextUpdate, system_instruction=_CONTENT, tools=wrapped(repeated(NAMED), "tools")).codec,
    ),
}
"""What a client's frame may hold, exactly one of them."""

FROM_SERVER = Shape(
    messages.ServerMessage,
    setup_complete=Shape(messages.SetupComplete, session_id=TEXT).codec,
    session_resumption_update=Shape(
        messages.SessionResumptionUpdate,
        new_handle=TEXT,
        resumable=TRUTH,
        last_consumed_client_message_index=INT64,
    ).codec,
    server_content=Shape(
        messages.ServerContent,
        model_turn=_CONTENT,
        generation_complete=TRUTH,
        turn_complete=TRUTH,
        interrupted=TRUTH,
        input_transcription=_SPOKEN,
        output_transcription=_SPOKEN,
    ).codec,
    tool_call=Shape(messages.ToolCall, function_calls=repeated(_CALL)).codec,
    tool_call_cancellation=Shape(messages.ToolCallCancellation, ids=repeated(TEXT)).codec,
    go_away=Shape(messages.GoAway, time_left_s=DURATION).codec,
    usage_metadata=NAMED,
    voice_activity=NAMED,
)
"""A server's frame."""
