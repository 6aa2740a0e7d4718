"""Fields that are no messages: how their JSON becomes a value and back."""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.live.protocol import errors, names

_DURATION = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)s")
_INT64 = re.compile(r"-?\d{1,19}")
_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class Codec:
    """Both directions of one type of field."""

    read: Callable[[Any, str], Any]
    """From JSON; takes the value and the field's path. Raises ``ProtocolError``."""

    write: Callable[[Any, bool], Any]
    """To JSON; takes the value and whether names are in snake case."""

    absent: Any = None
    """What a field without a default is where it was left out, as in protobuf."""

    required: bool = False
    """Whether such a field has to be there."""

    repeated: bool = False
    """Whether JSON has a list here."""


def _as_it_is(value: Any, _snake: bool) -> Any:
    return value


def _text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise errors.wrong_type(at, "TYPE_STRING", value)
    return value


def _truth(value: Any, at: str) -> bool:
    if not isinstance(value, bool):
        raise errors.wrong_type(at, "TYPE_BOOL", value)
    return value


def _object(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise errors.wrong_type(at, "TYPE_MESSAGE", value)
    return value


def _presence(value: Any, at: str) -> bool:
    _object(value, at)
    return True


def _named(value: Any, at: str) -> Any:
    return names.renamed(_object(value, at), names.camel)


def _write_named(value: Any, snake: bool) -> Any:
    return names.renamed(dict(value), names.snake) if snake else dict(value)


def _octets(value: Any, at: str) -> bytes:
    """Standard base64; protobuf's JSON reader takes the URL-safe alphabet and missing padding as well."""
    text = _text(value, at)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    try:
        return base64.b64decode(
            text.translate(_URL_SAFE).rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True
        )
    except (binascii.Error, ValueError):
        raise errors.not_octets(at, text) from None


def _duration(value: Any, at: str) -> float:
    found = _DURATION.fullmatch(_text(value, at))
    if found is None:
        raise errors.wrong_type(at, "google.protobuf.Duration", value)
    return float(found[1])


def _write_duration(value: float, _snake: bool) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def _int64(value: Any, at: str) -> int:
    """A JSON string, since JavaScript's numbers are too short for it; a number is taken as well."""
    if isinstance(value, str) and _INT64.fullmatch(value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value == int(value):
        return int(value)
    raise errors.wrong_type(at, "TYPE_INT64", value)


TEXT = Codec(_text, _as_it_is, absent="")
TRUTH = Codec(_truth, _as_it_is)
PRESENCE = Codec(_presence, lambda _value, _snake: {})
"""A message without fields that matter here: its being there is the news."""

FREE = Codec(_object, lambda value, _snake: dict(value))
"""The user's own object."""

NAMED = Codec(_named, _write_named)
"""A message of the protocol that the lab keeps as JSON, its names in camel case."""

OCTETS = Codec(_octets, lambda value, _snake: base64.b64encode(value).decode("ascii"), absent=b"")
DURATION = Codec(_duration, _write_duration)
INT64 = Codec(_int64, lambda value, _snake: str(value))


def repeated(codec: Codec) -> Codec:
    """A list of such values, as a tuple."""

    def read(value: Any, at: str) -> Any:
        # The service takes one value for a list of one: its own examples write ``parts`` as a single object.
        listed = value if isinstance(value, list) else [value]
        return tuple(codec.read(item, f"{at}[{index}]") for index, item in enumerate(listed))

    return Codec(read, lambda value, snake: [codec.write(item, snake) for item in value], repeated=True)


def wrapped(codec: Codec, name: str) -> Codec:
    """A message of that one field, which the lab shows as the field's own value."""

    def read(value: Any, at: str) -> Any:
        for key in _object(value, at):
            if key != name:
                raise errors.unknown_name(key, at)
        return codec.read(value.get(name, []), f"{at}.{name}")

    return Codec(read, lambda value, snake: {name: codec.write(value, snake)})
