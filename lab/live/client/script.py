"""What the assistant is to do, step by step, as JSON on the command line.

Each object names its step by ``do``; the other keys are the fields of the class, ``_s`` left out. A step that cannot be
read is an error that names the step and the field.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from lab.core.errors import UsageError
from lab.live.client.steps import LapseTime, Resume, Step

KINDS: Mapping[str, type[Any]] = {kind.do: kind for kind in typing.get_args(Step)}
"""Each step by its name in JSON."""


@dataclass(frozen=True, slots=True)
class Script:
    """The steps, in order; a script ends as if its last step were ``End``."""

    steps: tuple[Step, ...] = field(default=())


def parse_script(text: str) -> Script:
    """A script from JSON: a list of steps.

    Raises:
        UsageError: it is no JSON, no list of objects, or a step or field cannot be read; the message says which.
    """
    try:
        objects = json.loads(text)
    except ValueError as error:
        raise UsageError(f"The script is no JSON: {error}.") from error
    if not isinstance(objects, list):
        raise UsageError(
            f"A script is a list of steps; this is {_kind(objects)}.", fix='[{"do": "say", "clip": "book"}]'
        )
    return Script(tuple(parse_step(number, each) for number, each in enumerate(objects, 1)))


def parse_step(number: int, value: Any) -> Step:
    """One step.

    Args:
        number: Its place in the script, from 1, for the message.
        value: The JSON value.

    Raises:
        UsageError: a step or field that cannot be read.
    """
    if not isinstance(value, dict):
        raise UsageError(f"Step {number} is {_kind(value)}; a step is an object with a do.")
    kind = KINDS.get(name) if isinstance(name := value.get("do"), str) else None
    if kind is None:
        raise UsageError(f"Step {number} does {name!r}, which is no step.", fix=f"one of {', '.join(KINDS)}")
    where, hints = f"Step {number} ({name})", get_type_hints(kind)
    known = {_written(each): each for each in dataclasses.fields(kind)}
    if strange := [key for key in value if key != "do" and key not in known]:
        raise UsageError(f"{where} has no field {strange[0]}.", fix=f"its fields are: {', '.join(known) or 'none'}")
    if missing := [key for key, each in known.items() if key not in value and _required(each)]:
        raise UsageError(f"{where} needs the field {missing[0]}.")
    values = {
        known[key].name: _read(f"{where}, field {key}", each, hints[known[key].name])
        for key, each in value.items()
        if key != "do"
    }
    made = kind(**values)
    _check(where, made)
    return typing.cast("Step", made)


def write_script(steps: Sequence[Step]) -> str:
    """The script as JSON; reads back as the same steps."""
    return json.dumps([write_step(step) for step in steps])


def write_step(step: Step) -> dict[str, Any]:
    """One step as a JSON object, defaults left out."""
    written: dict[str, Any] = {"do": step.do}
    for each in dataclasses.fields(step):
        value = getattr(step, each.name)
        if _required(each) or value != each.default:
            written[_written(each)] = list(value) if isinstance(value, tuple) else value
    return written


def _written(each: "dataclasses.Field[Any]") -> str:
    return each.name.removesuffix("_s")


def _required(each: "dataclasses.Field[Any]") -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def _read(where: str, value: Any, hint: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _read(where, value, next(each for each in args if each is not type(None)))
    if origin is tuple:
        if not isinstance(value, list):
            raise UsageError(f"{where} is a list of numbers; {_kind(value)} is none.")
        return tuple(_read(where, each, args[0]) for each in value)
    if origin is typing.Literal:
        if value not in args:
            raise UsageError(f"{where} is one of {', '.join(args)}; {value!r} is none of them.")
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if hint is float:
        raise UsageError(f"{where} is a number, not negative; {value!r} is none.")
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise UsageError(f"{where} is {_NAMES[hint]}; {value!r} is none.")
    return value


def _check(where: str, step: Step) -> None:
    """What no single field can say."""
    if isinstance(step, Resume):
        if step.every_s is not None and (step.until_s is None or step.every_s <= 0):
            raise UsageError(f"{where} with every needs a positive every, and until: it would never end.")
        if list(step.at) != sorted(step.at):
            raise UsageError(f"{where}, field at: the offsets ascend; {list(step.at)} do not.")
    if isinstance(step, LapseTime) and step.factor <= 0:
        raise UsageError(f"{where}, field factor: time runs by a positive factor.")


_NAMES = {str: "a text", bool: "true or false", int: "a whole number"}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
