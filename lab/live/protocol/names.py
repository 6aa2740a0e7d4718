"""Both spellings of a field's name: protobuf's JSON takes ``turn_complete`` and ``turnComplete`` for one field."""

import re
from collections.abc import Callable
from typing import Any

FREE = frozenset(
    {"args", "response", "labels", "default", "example", "const", "parametersJsonSchema", "responseJsonSchema"}
)
"""Fields whose value is the user's own: no name in it is the protocol's."""

MAPS = frozenset({"properties"})
"""Fields whose value maps names of the user's to messages: a schema's properties."""

Rename = Callable[[str], str]


def camel(name: str) -> str:
    """``turn_complete`` as ``turnComplete``; what is camel case already stays."""
    return re.sub(r"(?<=[A-Za-z0-9])_([a-z0-9])", lambda found: found[1].upper(), name) if "_" in name else name


def snake(name: str) -> str:
    """``turnComplete`` as ``turn_complete``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)


def renamed(value: Any, rename: Rename) -> Any:
    """An object with the names of its fields in one spelling, at every level; free-form maps as they stood.

    Args:
        value: JSON.
        rename: ``camel`` or ``snake``.
    """
    if isinstance(value, list | tuple):
        return [renamed(item, rename) for item in value]
    if not isinstance(value, dict):
        return value
    return {rename(name): _below(camel(name), item, rename) for name, item in value.items()}


def _below(field: str, value: Any, rename: Rename) -> Any:
    if field in FREE:
        return value
    if field in MAPS and isinstance(value, dict):
        return {name: renamed(item, rename) for name, item in value.items()}
    return renamed(value, rename)
