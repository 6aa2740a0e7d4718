"""What the assistant is to do, step by step: dataclasses here, JSON objects on the command line.

Each object names its step by ``do``; the other keys are the fields of the class, ``_s`` left out. All durations are
session seconds. A step that cannot be read is an error that names the step and the field.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_type_hints

from lab.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Connect:
    """Open the first connection; it happens by itself where a script does not begin with this."""

    do: ClassVar[str] = "connect"
    handle: str | None = None
    """Resume a session of an earlier run."""

    transparent: bool = False
    """Write ``"transparent": true`` into the setup, which the developer endpoint refuses."""

    may_fail: bool = False
    """Go on with the script when it is refused."""

    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Say:
    """Speak a clip in real time, 100 ms of audio at a time; in text mode its words are typed."""

    do: ClassVar[str] = "say"
    clip: str


@dataclass(frozen=True, slots=True)
class Type:
    """Type a text."""

    do: ClassVar[str] = "type"
    text: str
    turn: bool = False
    """As a complete turn (``clientContent``) instead of real-time input."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for an event of the assistant's own, and then so long after the instant of that event.

    Events count that came since the last acting step began, and after the event that the last wait found.
    """

    do: ClassVar[str] = "await"
    event: str
    """Its name, or several with ``|`` between them: whichever comes first."""

    plus_s: float = 0.0
    timeout_s: float = 30.0
    """A script that waits longer than this is stuck."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Say an event by which whoever runs the assistant acts: cut, heal, freeze."""

    do: ClassVar[str] = "mark"
    name: str


@dataclass(frozen=True, slots=True)
class Drop:
    """End the connection from here."""

    do: ClassVar[str] = "drop"
    how: typing.Literal["abort", "close"] = "abort"
    """Abort the TCP connection, or send a close frame (1000)."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Attempts to resume, until one is accepted; the old connection is left as it is."""

    do: ClassVar[str] = "resume"
    at: tuple[float, ...] = (0.0, 1.0)
    """When each begins, from the step's begin; one whose predecessor is still open begins after it."""

    every_s: float | None = None
    """After those, one every so often, start to start; None for no more."""

    until_s: float | None = None
    """None begins later than this; None with ``every_s`` would never end."""

    close_old_first: bool = False
    """Queue a close (1000) on the old connection before the first attempt."""

    timeout_s: float = 10.0
    """An attempt that is still open then has failed."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Open a new session, without a handle and without anything restored."""

    do: ClassVar[str] = "fresh"
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ReuseOld:
    """Go on with the lost connection: its path is back."""

    do: ClassVar[str] = "reuse-old"


@dataclass(frozen=True, slots=True)
class CloseOld:
    """Send a close frame on every connection that was lost and is still open."""

    do: ClassVar[str] = "close-old"
    code: int = 1000


@dataclass(frozen=True, slots=True)
class Watch:
    """Do nothing but listen."""

    do: ClassVar[str] = "watch"
    for_s: float


@dataclass(frozen=True, slots=True)
class HoldResult:
    """Keep results of calls back from now on."""

    do: ClassVar[str] = "hold-result"


@dataclass(frozen=True, slots=True)
class SendResult:
    """Send the results that were kept back, and later ones as they come."""

    do: ClassVar[str] = "send-result"


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask, wait for the whole answer, and compare it with the bookings."""

    do: ClassVar[str] = "ask"
    text: str = "Did you book it?"
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class LapseTime:
    """Let session time run by this factor, here and on the server; 1 ends it."""

    do: ClassVar[str] = "lapse"
    factor: float


@dataclass(frozen=True, slots=True)
class Recover:
    """Hand over to the recovery policy until it has adopted a connection or given up."""

    do: ClassVar[str] = "recover"
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class End:
    """Say the bookings and the ledger, then wait for ``quit``; sockets stay as they are."""

    do: ClassVar[str] = "end"


Step = (
    Connect | Say | Type | Await | Mark | Drop | Resume | Fresh | ReuseOld | CloseOld | Watch | HoldResult | SendResult
    | Ask | LapseTime | Recover | End
)  # fmt: skip

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
