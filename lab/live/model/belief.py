"""What the model holds true about a booking: the last tool response, or a status note's word, and nothing else."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lab.live.model.hearing import normalise, slot_in


class Status(Enum):
    """How a booking stands, as far as the model was told."""

    NONE = "none"
    """It made no call and was told of none."""

    CALLED = "called"
    """It called its tool and was told nothing since."""

    BOOKED = "booked"
    PROCESSING = "processing"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """The user interrupted the model, and with it the call."""

    UNCLEAR = "unclear"
    """The tool's response says none of these."""


@dataclass(frozen=True, slots=True)
class Belief:
    """A booking and how it stands."""

    status: Status = Status.NONE
    slot: str | None = None
    """``tomorrow 3pm``."""

    confirmation_id: str | None = None


READINGS = (
    (Status.FAILED, re.compile(r"\b(fail(ed|ure|s)?|errors?|could not|cannot|not booked|rejected|unavailable)\b")),
    (
        Status.PROCESSING,
        re.compile(r"\b(process(ed|ing)|in progress|pending|running|not finished|under way|accepted)\b"),
    ),
    (Status.BOOKED, re.compile(r"\b(booked|confirmed|succeeded|success|completed|committed|done|ok)\b")),
)
"""First match wins: a booking that failed is spoken of with the words of one that did not."""

CONFIRMATION = re.compile(r"\b[A-Z]{2,}-\d+\b")

NOTE = re.compile(
    r"^\W*(\w+\W+){0,2}?((system|status|update)\W+(note|update|message)|(note|system)\s*:)", re.IGNORECASE
)
"""How a turn begins that a program wrote, not the user: ``[System note, ...``."""

REPORT = re.compile(r"\b(is|are) (now )?booked\b|\bfailed\b")
"""How the model's own words settle a request to book."""


def told(slot: str | None, response: Mapping[str, Any]) -> Belief:
    """What a tool's response says of the slot that was called for.

    Args:
        slot: Of the call.
        response: As the tool answered: ``{"status": "booked", "confirmation_id": "BK-1001"}``; ``result``, ``output``
            and ``error`` are read alike.
    """
    words = " ".join(str(response[key]) for key in ("status", "result", "output") if key in response)
    status = Status.FAILED if "error" in response else _status(normalise(words.replace("_", " ")))
    confirmation = response.get("confirmation_id")
    if status is None:
        status = Status.UNCLEAR if confirmation is None else Status.BOOKED
    return Belief(status, slot, None if confirmation is None else str(confirmation))


def reported(text: str) -> Belief | None:
    """How a booking came out by the model's own words in an earlier turn; None where it did not say.

    A model believes its transcript: what it told the user once it holds true in a restored session too.
    """
    words = normalise(text)
    if REPORT.search(words) is None:
        return None
    found = CONFIRMATION.search(text)
    return Belief(_status(words) or Status.BOOKED, slot_in(words), found[0] if found else None)


def is_note(text: str) -> bool:
    """Whether a user's turn is a note by the program that restored the session."""
    return NOTE.search(text) is not None


def noted(text: str) -> Belief | None:
    """What a note's last status line says; None where it has none.

    A status line names a tool or a slot, and a status; a note's other lines speak of bookings too, and mean none.

    Args:
        text: The whole note: one line per status, or one sentence where it is all one line.
    """
    beliefs = list(_status_lines(text))
    return beliefs[-1] if beliefs else None


def _status_lines(text: str) -> Iterator[Belief]:
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines if len(lines) > 1 else re.split(r"(?<=[.!?;])\s+", text):
        words = normalise(line)
        slot, status = slot_in(words), _status(words)
        if status is not None and (slot is not None or "book_slot" in line):
            found = CONFIRMATION.search(line)
            yield Belief(status, slot, found[0] if found else None)


def _status(words: str) -> Status | None:
    return next((status for status, pattern in READINGS if pattern.search(words)), None)
