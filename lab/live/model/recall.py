"""What a model makes of a history that is put before it: the client's notes, its own words, and what is still asked.

A restored session's history is the transcript of another one. What a note says goes before what the model said, and a
request to book that nobody answered is made again (study: 2 of 2 without a note, 0 of 7 with one).
"""

from collections.abc import Sequence

from lab.live.model.belief import Belief, is_note, noted, reported
from lab.live.model.hearing import Intent, Request, understand
from lab.live.protocol.messages import Content


def last_note(turns: Sequence[Content]) -> Belief | None:
    """What the latest of the client's own notes says that can be understood; None where none does."""
    beliefs = [noted(turn.text) for turn in turns if turn.role != "model" and is_note(turn.text)]
    return next((belief for belief in reversed(beliefs) if belief is not None), None)


def last_report(turns: Sequence[Content]) -> Belief | None:
    """What the model itself said last of how the booking stands; None where it said nothing of it."""
    beliefs = [reported(turn.text) for turn in turns if turn.role == "model"]
    return next((belief for belief in reversed(beliefs) if belief is not None), None)


def open_request(turns: Sequence[Content]) -> Request | None:
    """The last request to book that no later turn of the model settled."""
    request = None
    for turn in turns:
        if turn.role == "model":
            request = None if reported(turn.text) is not None else request
        elif not is_note(turn.text) and (understood := understand(turn.text)).intent is Intent.BOOK:
            request = understood
    return request
