"""What the model understands: words made alike, then a small explicit grammar over them."""

import re
from dataclasses import dataclass
from enum import Enum


class Intent(Enum):
    """What a user may want of the model."""

    BOOK = "book"
    """A slot, named in ``Request.slot``."""

    BOOK_WHAT = "book what"
    """A booking without a time."""

    ASKED = "asked"
    """Whether it is booked."""

    CANCEL = "cancel"
    GREETING = "greeting"
    QUESTION = "question"
    """A follow-up question about the appointment."""

    THANKS = "thanks"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Request:
    """A user's turn, understood."""

    intent: Intent
    slot: str | None = None
    """As the model names it to the tool: ``tomorrow 3pm``."""


DAYS = ("today", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

NUMBERS = {word: str(hour) for hour, word in enumerate(HOURS, start=1)} | {
    "fifteen": "15",
    "thirty": "30",
    "forty": "40",
}

CONTRACTIONS = {
    "o'clock": "oclock", "haven't": "have not", "didn't": "did not", "isn't": "is not", "it's": "it is",
    "couldn't": "could not", "wasn't": "was not", "i'm": "i am", "i've": "i have", "what's": "what is",
}  # fmt: skip

BOOKING = {"book", "reserve", "schedule"}

TIME = re.compile(
    r"\b(?:(?P<special>noon|midnight)"
    r"|(?P<half>half past )?(?P<hour>\d{1,2})(?:[: ](?P<minute>[0-5]\d))?(?: (?P<part>am|pm|oclock))?)\b"
)
"""A time of day in normalised words."""

GRAMMAR = (
    (Intent.ASKED, re.compile(r"\b(did|have) you (really |already )?(book|booked|reserve|reserved)\b")),
    (Intent.ASKED, re.compile(r"\b(is|was) (it|that|this|my|the)\b.*\b(booked|reserved|confirmed)\b")),
    (Intent.ASKED, re.compile(r"\b(status|did (it|that) work|did you do it)\b")),
    (Intent.CANCEL, re.compile(r"\b(cancel|never mind|nevermind|forget (it|that))\b")),
    (Intent.QUESTION, re.compile(r"\b(what (should|do|must) i|how (long|much)|where (is|do)|need to bring)\b")),
    (Intent.THANKS, re.compile(r"\b(thanks|thank you|goodbye|bye)\b")),
    (Intent.GREETING, re.compile(r"\b(hi|hello|hey|hear me|are you( still)? there)\b")),
)
"""First match wins; a request to book comes before all but the question whether it is booked."""


def normalise(text: str) -> str:
    """A sentence's words, lower case, one blank between them, times of day in one spelling.

    Args:
        text: As typed, or as recognised: ``three p m``, ``3 p.m.``, ``3pm`` all become ``3 pm``.
    """
    words = re.sub(r"[^a-z0-9:' ]+", " ", re.sub(r"\b([ap])\.m\b\.?", r"\1m", text.lower().replace("\u2019", "'")))
    words = re.sub(r"(?<=\d)(?=[ap]m\b)", " ", words)
    words = " ".join(CONTRACTIONS.get(word, NUMBERS.get(word, word)) for word in words.split())
    words = re.sub(r"\b([ap]) m\b", r"\1m", words.replace("forty 5", "45").replace("40 5", "45"))
    return words.replace("'", "")


def understand(text: str) -> Request:
    """What a user's turn asks for.

    Args:
        text: Typed or recognised.
    """
    words = normalise(text)
    if GRAMMAR[0][1].search(words) or GRAMMAR[1][1].search(words):
        return Request(Intent.ASKED)
    if BOOKING & set(words.split()) and not GRAMMAR[3][1].search(words):
        slot = slot_in(words)
        return Request(Intent.BOOK_WHAT) if slot is None else Request(Intent.BOOK, slot)
    return Request(next((intent for intent, pattern in GRAMMAR if pattern.search(words)), Intent.UNKNOWN))


def slot_in(words: str) -> str | None:
    """The slot that normalised words name, ``tomorrow 3pm``; None where they name no time of day.

    Args:
        words: See ``normalise``.
    """
    time = next((found for match in TIME.finditer(words) if (found := _time(match))), None)
    if time is None:
        return None
    day = next((word for word in words.split() if word in DAYS), None)
    return time if day is None else f"{day} {time}"


def _time(match: re.Match[str]) -> str | None:
    """A time of day in the tool's spelling, None for a number that is none."""
    if match["special"]:
        return match["special"]
    hour, minute, part = int(match["hour"]), match["minute"], match["part"]
    if match["half"]:
        minute = "30"
    if (part is None and minute is None) or hour > 23 or (part and not 1 <= hour <= 12):
        return None
    if part in (None, "oclock"):
        # Nobody means the small hours when a booking is for half past three.
        part = "am" if hour == 0 or 7 <= hour < 12 else "pm"
        hour = (hour - 1) % 12 + 1
    return f"{hour}{'' if minute in (None, '00') else ':' + minute}{part}"
