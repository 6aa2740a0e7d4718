"""The message set as protobuf descriptors, built from ``agent_session.proto``.

The description is read once, for the first codec: nothing is generated, so that no generated code has to fit the
installed protobuf, and one constant alone says under which number ``session_closed`` goes. The reader knows what that
file uses of proto3, and says so where it meets something else.
"""

import functools
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Wire

SESSION_CLOSED_FIELD = 24
"""Of ``AgentSessionEvent``: the next free number of livekit-protocol 1.1.29, and the one of its earlier draft (protocol
PR 1705). The number that was merged (PR 1888) could not be confirmed; whoever knows it changes it here."""

PACKAGE = "lab.host"

_TOKEN = re.compile(r"//[^\n]*|\s+|([A-Za-z_][\w.]*|\d+|\"[^\"]*\"|[{}=;])")

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
}


@functools.cache
def message_class(*, session_closed: bool = True) -> type[Wire]:
    """The class of the outermost message.

    Args:
        session_closed: Whether this side knows that event; one that does not takes it for an unknown event.
    """
    description = read(files(__package__).joinpath("agent_session.proto").read_text(encoding="utf-8"))
    if session_closed:
        event = next(message for message in description.message_type if message.name == "AgentSessionEvent")
        _add(event, "SessionClosed", "session_closed", SESSION_CLOSED_FIELD, oneof=True)
        event.field[-1].type = _Field.TYPE_MESSAGE
    pool = descriptor_pool.DescriptorPool()
    pool.Add(description)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.AgentSessionMessage"))


def read(text: str) -> descriptor_pb2.FileDescriptorProto:
    """A description from its text: messages and enums at the top, scalars, ``optional``, ``repeated``, ``oneof``.

    Raises:
        ValueError: it uses something else.
    """
    description = descriptor_pb2.FileDescriptorProto(name="agent_session.proto", syntax="proto3", package=PACKAGE)
    tokens = _tokens(text)
    for word in tokens:
        if word in {"syntax", "package"}:
            _skip_statement(tokens)
        elif word == "enum":
            _read_enum(tokens, description.enum_type.add())
        elif word == "message":
            _read_message(tokens, description.message_type.add())
        else:
            raise ValueError(f"The reader of descriptions does not know {word!r}.")
    _resolve(description)
    return description


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"The reader of descriptions does not know {text[at : at + 20]!r}.")
        at = found.end()
        if found[1]:
            yield found[1]


def _skip_statement(tokens: Iterator[str]) -> None:
    for word in tokens:
        if word == ";":
            return


def _expect(tokens: Iterator[str], wanted: str) -> None:
    if (found := next(tokens)) != wanted:
        raise ValueError(f"The description has {found!r} where {wanted!r} belongs.")


def _read_enum(tokens: Iterator[str], enum: descriptor_pb2.EnumDescriptorProto) -> None:
    enum.name = next(tokens)
    _expect(tokens, "{")
    for name in iter(functools.partial(next, tokens), "}"):
        _expect(tokens, "=")
        enum.value.add(name=name, number=int(next(tokens)))
        _expect(tokens, ";")


def _read_message(tokens: Iterator[str], message: descriptor_pb2.DescriptorProto) -> None:
    message.name = next(tokens)
    _expect(tokens, "{")
    oneof = False
    while (word := next(tokens)) != "}" or oneof:
        if word == "oneof":
            message.oneof_decl.add(name=next(tokens))
            _expect(tokens, "{")
            oneof = True
        elif word == "}":
            oneof = False
        else:
            _read_field(tokens, message, word, oneof=oneof)
    # proto3 keeps the groups that stand for optional fields behind the written ones.
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _read_field(tokens: Iterator[str], message: descriptor_pb2.DescriptorProto, word: str, *, oneof: bool) -> None:
    label = word if word in {"optional", "repeated"} else ""
    kind = next(tokens) if label else word
    name = next(tokens)
    _expect(tokens, "=")
    _add(message, kind, name, int(next(tokens)), oneof=oneof, label=label)
    _expect(tokens, ";")


def _add(
    message: descriptor_pb2.DescriptorProto, kind: str, name: str, number: int, *, oneof: bool, label: str = ""
) -> None:
    many = _Field.LABEL_REPEATED if label == "repeated" else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=many, proto3_optional=label == "optional")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type_name = f".{PACKAGE}.{kind}"
    if oneof:
        field.oneof_index = len(message.oneof_decl) - 1


def _resolve(description: descriptor_pb2.FileDescriptorProto) -> None:
    kinds: dict[str, Any] = {f".{PACKAGE}.{enum.name}": _Field.TYPE_ENUM for enum in description.enum_type}
    kinds |= {f".{PACKAGE}.{message.name}": _Field.TYPE_MESSAGE for message in description.message_type}
    for field in (field for message in description.message_type for field in message.field if field.type_name):
        if field.type_name not in kinds:
            raise ValueError(f"The description names {field.type_name}, and does not say what it is.")
        field.type = kinds[field.type_name]
