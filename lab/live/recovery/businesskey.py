"""When two calls mean the same thing in the world: tool, and what is asked of it, in one spelling.

Equal: the order and the case of words; "at", "on", "for", "the"; ``3pm``, ``3 pm``, ``3 p.m.``, ``3:00 pm``, ``three
pm``, ``15:00``; ``noon`` and ``12 pm``; ``mon`` and ``Monday``; the day before the time or after it; ``1`` and ``1.0``;
an argument that is null and none at all.

Not equal: times that leave open which half of the day is meant (``3:00``, ``three o'clock``) and those that do not; a
day and a date, or "tomorrow" and the weekday that it is: that needs a calendar, and the 600 s within which keys are
compared make it rare; a call without the day and one with it.

A wording that has one word more than this module understands ("the day after tomorrow", "3pm for two people", "next
Monday") is compared as text, folded. So no two different slots share a key; one slot that is worded in two such ways
has two.
"""

import re
from collections.abc import Mapping
from typing import Any

from lab.live.protocol.messages import Json

WHEN_ARGUMENTS = frozenset({"slot", "time", "when", "day", "date", "start", "at", "datetime"})
"""Arguments whose text is read as a day and a time; others are compared as text."""

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_SHORT = {"tues": "tuesday", "thur": "thursday", "thurs": "thursday", **{day[:3]: day for day in _WEEKDAYS}}

_DAYS = {**{day: day for day in ("today", "tomorrow", *_WEEKDAYS)}, **_SHORT}

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_FILLERS = frozenset({"at", "on", "for", "the", "slot"})

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_TIME = re.compile(r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))?(?P<seconds>:00)?(?P<half>am|pm)?", re.ASCII)

_EDGES = " .,;!?"


def normalise(name: str, args: Json) -> str:
    """The key of a call: ``book_slot(slot="tomorrow 15:00")``.

    Args:
        name: The tool.
        args: As the model gave them.
    """
    given = sorted((key, value) for key, value in args.items() if value is not None)
    return f"{name}({', '.join(f'{_named(key)}={_spelled(value, key in WHEN_ARGUMENTS)}' for key, value in given)})"


def wording(text: str) -> str:
    """A day and a time in one spelling (``tomorrow 15:00``), any other text folded.

    ``tomorrow 3:00?`` is a time that may be either half of the day.
    """
    folded = " ".join(text.casefold().split()).strip(_EDGES)
    spaced = re.sub(r"(?<![a-z])([ap])\.?\s?m\b\.?", r"\1m", folded.replace(",", " "))
    spaced = re.sub(r"(?<=\d)\s+(?=[ap]m\b)", "", spaced)
    spaced = re.sub(rf"({_DATE.pattern})t(?=\d)", r"\1 ", spaced)
    words = _joined([word for word in spaced.split() if word not in _FILLERS])
    days = [day for word in words if (day := _day(word)) is not None]
    times = [time for word in words if (time := _time(word)) is not None]
    understood = len(days) + len(times) == len(words) and len(days) <= 1 and len(times) <= 1
    return " ".join(days + times) if understood and words else folded


def _joined(words: list[str]) -> list[str]:
    """Hours in words as figures, with what follows them: ``three pm`` is one word of a time."""
    joined: list[str] = []
    for word in words:
        figure = str(_HOURS.index(word) + 1) if word in _HOURS else word
        if joined and word in {"am", "pm", "o'clock"} and joined[-1].isdigit():
            joined[-1] += word.replace("o'clock", ":00")
        else:
            joined.append(figure)
    return joined


def _day(word: str) -> str | None:
    return word if _DATE.fullmatch(word) else _DAYS.get(word)


def _time(word: str) -> str | None:
    """``15:00``; with the half of the day open, ``3:00?``; None for what is no time."""
    if word == "noon":
        return "12:00"
    found = _TIME.fullmatch(word.removesuffix("?"))
    if found is None or (found["seconds"] and not found["minute"]):
        return None
    hour, minute, half = int(found["hour"]), found["minute"] or "00", found["half"]
    if half is not None:
        return f"{hour % 12 + (12 if half == 'pm' else 0):02}:{minute}" if 1 <= hour <= 12 else None
    if hour > 23 or (found["minute"] is None and not 1 <= hour <= 12):
        return None
    # "03:00" and "15:00" are of 24 hours; "3:00" may be either half of the day, and so may "10:30".
    clear = hour > 12 or (found["minute"] is not None and found["hour"].startswith("0"))
    return f"{hour:02}:{minute}" if clear else f"{hour}:{minute}?"


def _spelled(value: Any, when: bool) -> str:
    """A JSON value so that equal ones look equal and no two others do."""
    if isinstance(value, str):
        return _quoted(wording(value) if when else " ".join(value.casefold().split()))
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)}: {_spelled(value[key], when)}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_spelled(each, when) for each in value) + "]"
    return repr(value)


def _named(key: str) -> str:
    return key if key.isidentifier() else _quoted(key)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
