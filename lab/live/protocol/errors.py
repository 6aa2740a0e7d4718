"""What is not the protocol: the field, the sentence that the real service says of it, and the close code."""

from collections.abc import Sequence
from typing import Any

from lab.live.protocol import closing

_KINDS = {type(None): "null", dict: "an object", list: "a list"}

_SHOWN = 40
"""Characters of a wrong value that are quoted."""


class ProtocolError(ValueError):
    """A frame that breaks the protocol.

    Args:
        field: Where, as the service writes it (``setup.tools[0].name``); empty for the frame as a whole.
        reason: The sentence for the close frame, not yet cut.
        close_code: The WebSocket close code.
    """

    def __init__(self, field: str, reason: str, close_code: int = closing.INVALID_ARGUMENT.code) -> None:
        super().__init__(field, reason, close_code)
        self.field = field
        self.reason = reason
        self.close_code = close_code

    def __str__(self) -> str:
        return self.reason


# The sentence about an unknown name is the study's (P1). The others follow the wording of the same JSON reader; against
# the service itself they were not checked, and no client is known to read them.


def not_json(what: str) -> ProtocolError:
    """The frame is no JSON.

    Args:
        what: A sentence about what was met.
    """
    return ProtocolError("", f"Invalid JSON payload received. {what}")


def unknown_name(name: str, at: str) -> ProtocolError:
    """A field that the message does not have (the study's P1)."""
    where = f" at '{at}'" if at else ""
    return ProtocolError(
        _join(at, name), f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    )


def not_repeating(name: str, at: str) -> ProtocolError:
    """A list where one value belongs."""
    where = f" at '{at}'" if at else ""
    text = (
        f'Invalid JSON payload received. Unknown name "{name}"{where}: Proto field is not repeating, cannot start list.'
    )
    return ProtocolError(_join(at, name), text)


def wrong_type(at: str, wanted: str, value: Any) -> ProtocolError:
    """A value of another type.

    Args:
        at: The field.
        wanted: The type's name: ``TYPE_STRING``, ``TYPE_BOOL`` and the like.
        value: What came.
    """
    return ProtocolError(at, f"Invalid value at '{at}' ({wanted}), {_shown(value)}")


def not_octets(at: str, value: str) -> ProtocolError:
    """Text that is no base64."""
    return ProtocolError(at, f"Invalid value at '{at}' (TYPE_BYTES), Base64 decoding failed for {_shown(value)}")


def second_of_one(at: str, group: str, name: str) -> ProtocolError:
    """Two fields of which one may be set."""
    where = f" at '{at}'" if at else ""
    return ProtocolError(
        _join(at, name), f"Invalid value{where} (oneof), oneof field '{group}' is already set. Cannot set '{name}'"
    )


def missing(at: str) -> ProtocolError:
    """What has to be there is not; the service does not say what."""
    return ProtocolError(at, closing.INVALID_ARGUMENT.reason)


def joined(parts: Sequence[str]) -> str:
    """A path of names."""
    return ".".join(part for part in parts if part)


def _join(at: str, name: str) -> str:
    return joined((at, name))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:_SHOWN]}"'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:_SHOWN] if isinstance(value, int | float) else _KINDS[type(value)]
