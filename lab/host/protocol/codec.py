"""Messages as octets, and octets as messages."""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Wire

from lab.host.protocol import messages as m
from lab.host.protocol.errors import NoMessage, Unsayable
from lab.host.protocol.schema import message_class

OUTER: Mapping[str, type] = {
    "audio_input": m.AudioInput,
    "audio_output": m.AudioOutput,
    "event": m.Event,
    "request": m.Request,
    "response": m.Response,
    "audio_playback_flush": m.PlaybackFlush,
    "audio_playback_clear": m.PlaybackClear,
    "audio_playback_finished": m.PlaybackFinished,
}
EVENTS: Mapping[str, type] = {
    "agent_state_changed": m.AgentStateChanged,
    "user_state_changed": m.UserStateChanged,
    "conversation_item_added": m.ItemAdded,
    "user_input_transcribed": m.UserInputTranscribed,
    "error": m.ErrorTold,
    "agent_false_interruption": m.AgentFalseInterruption,
    "session_closed": m.SessionClosed,
}
ASKS: Mapping[str, type] = {
    "ping": m.Ping,
    "get_chat_history": m.GetChatHistory,
    "run_input": m.RunInput,
    "get_agent_info": m.GetAgentInfo,
    "get_session_state": m.GetSessionState,
    "get_rtc_stats": m.GetRtcStats,
    "get_session_usage": m.GetSessionUsage,
    "get_framework_info": m.GetFrameworkInfo,
    "update_io": m.UpdateIo,
    "finalize_simulation": m.FinalizeSimulation,
}
ANSWERS: Mapping[str, type] = {
    "pong": m.Pong,
    "get_chat_history": m.ChatHistory,
    "run_input": m.RunResult,
    "get_agent_info": m.AgentInfo,
    "get_session_state": m.SessionState,
    "get_rtc_stats": m.RtcStats,
    "get_session_usage": m.SessionUsage,
    "get_framework_info": m.FrameworkInfo,
    "update_io": m.IoUpdated,
    "finalize_simulation": m.Finalized,
}
_NAMES = {kind: name for table in (OUTER, EVENTS, ASKS, ANSWERS) for name, kind in table.items()}


class Codec:
    """Reads and writes the set.

    Args:
        session_closed: Whether this side knows that event, as no released one does.
    """

    def __init__(self, *, session_closed: bool = True) -> None:
        self._class = message_class(session_closed=session_closed)

    def encode(self, message: m.Message) -> bytes:
        """A message's octets, without a frame around them.

        Raises:
            Unsayable: it holds what the set, or what this side knows of it, does not.
        """
        outer = self._class()
        try:
            _put(getattr(outer, _name(message)), message)
        except (AttributeError, TypeError, ValueError) as error:
            raise Unsayable(str(error)) from error
        return outer.SerializeToString()

    def decode(self, data: bytes) -> m.Message:
        """The message that octets are.

        Raises:
            NoMessage: they are none.
        """
        outer = self._class()
        try:
            outer.ParseFromString(data)
        except DecodeError:
            raise NoMessage("its octets are no protobuf of it") from None
        name = outer.WhichOneof("message")
        if name is None:
            raise NoMessage("it has none of the known fields")
        inner = getattr(outer, name)
        if name == "event":
            return m.Event(_event(inner))
        if name in {"request", "response"} and not inner.request_id:
            raise NoMessage(f"a {name} without an id")
        if name == "request":
            return m.Request(inner.request_id, _chosen(inner, "request", ASKS))
        if name == "response":
            error = inner.error if inner.HasField("error") else None
            return m.Response(inner.request_id, _chosen(inner, "response", ANSWERS), error)
        return typing.cast("m.Message", _take(OUTER[name], inner))


def _put(wire: Wire, value: Any) -> None:
    """Write a value into a message; an empty one is there all the same."""
    wire.SetInParent()
    match value:
        case m.Event(body=None):
            raise ValueError("an event that this side does not know")
        case m.Event(body=m.Unread(name=name)):
            getattr(wire, name).SetInParent()
        case m.Event(body=body):
            _put_chosen(wire, body)
        case m.Request(request_id=name, ask=ask):
            _set(wire, "request_id", name)
            _put_chosen(wire, ask)
        case m.Response(request_id=name, answer=answer, error=error):
            _set(wire, "request_id", name)
            if error is not None:
                _set(wire, "error", error)
            _put_chosen(wire, answer)
        case _:
            _put_fields(wire, value)


def _name(value: Any) -> str:
    """The name that a value's kind has in the set."""
    try:
        return _NAMES[type(value)]
    except KeyError:
        raise ValueError(f"{type(value).__name__} is none of its values") from None


def _put_chosen(wire: Wire, value: Any) -> None:
    if value is None:
        return
    name = _name(value)
    if name not in wire.DESCRIPTOR.fields_by_name:
        raise ValueError(f"this side's set does not have {name}")
    _put(getattr(wire, name), value)


def _put_fields(wire: Wire, value: Any) -> None:
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, tuple):
            many = getattr(wire, field.name)
            for one in inner:
                if dataclasses.is_dataclass(one):
                    _put_fields(many.add(), one)
                else:
                    many.append(one.encode("utf-8", "replace").decode())
        elif dataclasses.is_dataclass(inner):
            _put(getattr(wire, field.name), inner)
        elif inner is not None:
            _set(wire, field.name, inner)


def _set(wire: Wire, name: str, value: Any) -> None:
    if isinstance(value, str):
        # What an agent's code says may hold half a surrogate pair, which protobuf refuses.
        value = value.encode("utf-8", "replace").decode()
    try:
        setattr(wire, name, int(value) if isinstance(value, IntEnum) else value)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{name} cannot be {value!r:.100}") from None


def _event(wire: Wire) -> m.EventBody | None:
    name = wire.WhichOneof("event")
    if name is None:
        return None
    return typing.cast("m.EventBody", _take(EVENTS[name], getattr(wire, name))) if name in EVENTS else m.Unread(name)


def _chosen(wire: Wire, group: str, table: Mapping[str, type]) -> Any:
    name = wire.WhichOneof(group)
    return None if name is None else _take(table[name], getattr(wire, name))


def _take(kind: type, wire: Wire) -> Any:
    """A value of a message's fields."""
    return kind(**{name: _read(wire, name, wanted) for name, wanted in _fields(kind).items()})


def _read(wire: Wire, name: str, wanted: Any) -> Any:
    value = getattr(wire, name)
    if typing.get_origin(wanted) is tuple:
        (kind, _) = typing.get_args(wanted)
        return tuple(value) if kind is str else tuple(_take(kind, one) for one in value)
    if typing.get_origin(wanted) is types.UnionType:
        if not wire.HasField(name):
            return None
        (wanted, _) = typing.get_args(wanted)
    if dataclasses.is_dataclass(wanted):
        return _take(typing.cast("type", wanted), value)
    return _member(wanted, value) if issubclass(wanted, IntEnum) else value


def _member(kind: type[IntEnum], number: int) -> IntEnum:
    """A member of an enum; a later version's is the first one, as protobuf's default is."""
    return kind(number) if number in list(kind) else kind(0)


@functools.cache
def _fields(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)
