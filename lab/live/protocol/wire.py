"""JSON of messages, and messages of JSON: what stands in a WebSocket frame.

A client's frame holds exactly one message under its name, a server's frame any number of them. Names are read in both
spellings at every level; free-form maps (a call's arguments, a response, labels, a schema's properties) stay as they
stood. Fields that nobody here knows are kept in ``extra`` and written back, except those of ``refusals``, which the
real service is known to refuse.
"""

import json
import math
from typing import Any

from lab.live.protocol import errors, messages, names, refusals
from lab.live.protocol.errors import ProtocolError
from lab.live.protocol.paths import EndpointKind
from lab.live.protocol.schema import FROM_CLIENT, FROM_SERVER

__all__ = ["ProtocolError", "encode", "parse_client", "parse_server"]

_GROUP = "message_type"
"""The name of the choice that a client's frame is, in the service's sentence about a second one."""

_NAMES = {spelling: name for name in FROM_CLIENT for spelling in (name, names.camel(name))}

_KINDS = {kind: (name, codec) for name, (kind, codec) in FROM_CLIENT.items()}


def parse_client(data: str | bytes, *, kind: EndpointKind = EndpointKind.DEVELOPER) -> messages.ClientMessage:
    """The message of a client's frame.

    Args:
        data: A text or a binary frame's payload.
        kind: By which path the client came: what the service refuses differs.

    Raises:
        ProtocolError: it is no JSON object, holds none or several messages, or a field has another type.
    """
    try:
        found = {key: value for key, value in _loaded(data).items() if value is not None}
        for key in found:
            if key not in _NAMES:
                raise errors.unknown_name(key, "")
        if len(found) != 1:
            raise errors.second_of_one("", _GROUP, list(found)[1]) if found else errors.missing("")
        ((key, value),) = found.items()
        if isinstance(value, list):
            raise errors.not_repeating(key, "")
        name = _NAMES[key]
        message: messages.ClientMessage = FROM_CLIENT[name][1].read(value, name)
    except RecursionError:
        raise errors.not_json("Message too deep.") from None
    refusals.check(message, kind)
    return message


def parse_server(data: str | bytes) -> messages.ServerMessage:
    """The messages of a server's frame.

    Raises:
        ProtocolError: it is no JSON object, or a field has another type.
    """
    try:
        message: messages.ServerMessage = FROM_SERVER.read(_loaded(data), "")
    except RecursionError:
        raise errors.not_json("Message too deep.") from None
    return message


def encode(message: messages.ClientMessage | messages.ServerMessage, *, snake: bool = False) -> bytes:
    """A frame's payload, UTF-8.

    Args:
        message: Either direction's.
        snake: Names as Python's google-genai writes most of them, else camel case.

    Raises:
        ValueError: ``extra`` or a free-form map has no JSON: a number that is not finite.
    """
    if isinstance(message, messages.ServerMessage):
        body = FROM_SERVER.write(message, snake)
    else:
        name, codec = _KINDS[type(message)]
        body = {name if snake else names.camel(name): codec.write(message, snake)}
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def _loaded(data: str | bytes) -> dict[str, Any]:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise errors.not_json("Invalid UTF-8.") from None
    except ProtocolError:
        raise
    except ValueError:  # JSONDecodeError, or an integer of more digits than Python reads
        raise errors.not_json("Unexpected token.") from None
    if not isinstance(value, dict):
        raise errors.not_json("Root element must be a message.")
    return value


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> float:
    raise errors.not_json(f"Number out of range: {text[:20]}")


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
"""Made once: a message of audio is read in a third less time."""
