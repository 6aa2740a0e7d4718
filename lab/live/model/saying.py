"""What the model says."""

import re

from lab.live.model.belief import Belief, Status
from lab.live.model.hearing import Intent

PLAIN = {
    Intent.GREETING: "Yes, I can hear you. How can I help?",
    Intent.BOOK_WHAT: "Which day and time shall I book for you?",
    Intent.QUESTION: "It takes half an hour, and there is nothing to bring.",
    Intent.THANKS: "You are welcome. Goodbye.",
    Intent.UNKNOWN: "Sorry, I did not understand that.",
}
"""What needs no belief. The answer to a question takes 2.6 s: it must be playing 1.0 s after it began, and be sent by
then."""

NO_TOOL = "I have no way to book from here."
NO_CANCELLING = "I can't cancel a booking from here."
LISTENING = "I am here. Please go on."


def answer(belief: Belief) -> str:
    """What it says when asked whether it is booked.

    Args:
        belief: What it was told last.
    """
    slot = _slot(belief)
    match belief.status:
        case Status.NONE:
            return "I haven't booked anything yet. Shall I?"
        case Status.CALLED:
            return booking(belief)
        case Status.BOOKED:
            return f"Yes, {slot} is booked.{_confirmation(belief)}"
        case Status.PROCESSING:
            return f"The booking of {slot} is still being processed."
        case Status.FAILED:
            return f"No, booking {slot} failed."
        case Status.CANCELLED:
            return f"I stopped booking {slot} when you interrupted me."
        case Status.UNCLEAR:
            return f"I do not know how {slot} came out."


def announcement(belief: Belief) -> str:
    """What it says when a tool has responded, or a note told it how the booking stands.

    Args:
        belief: What it has just been told.
    """
    match belief.status:
        case Status.BOOKED:
            return f"Done: {_slot(belief)} is booked.{_confirmation(belief)}"
        case Status.FAILED:
            return f"Sorry, booking {_slot(belief)} failed."
        case _:
            return answer(belief)


def booking(belief: Belief) -> str:
    """What it says while its call is open."""
    return f"I'm booking {_slot(belief)} for you now."


def cancelling(belief: Belief) -> str:
    """What it says when asked to cancel; it has no tool for that."""
    return NO_CANCELLING if belief.status is not Status.NONE else answer(belief).removesuffix(" Shall I?")


def _slot(belief: Belief) -> str:
    """``the 3 pm slot tomorrow``."""
    if belief.slot is None:
        return "your slot"
    *days, time = belief.slot.split()
    return " ".join(["the", re.sub(r"(?<=\d)(?=[ap]m$)", " ", time), "slot", *days])


def _confirmation(belief: Belief) -> str:
    return "" if belief.confirmation_id is None else f" The confirmation is {belief.confirmation_id}."
