"""What a history says of the booking, and what it leaves open."""

from lab.live.model.belief import Belief, Status
from lab.live.model.recall import last_note, last_report, open_request
from lab.live.protocol.messages import Content, Part
from tests.live.model.stage import ASK, BOOK

TOLD = "Your slot tomorrow at 3 pm is booked. The confirmation is BK-1001."
NOTE = "[System note, not from the user.]\nbook_slot, tomorrow 3pm: {}\nGo on."


def user(text: str) -> Content:
    return Content("user", (Part(text=text),))


def model(text: str) -> Content:
    return Content("model", (Part(text=text),))


def test_the_latest_note_that_says_something_holds() -> None:
    turns = [user(NOTE.format("still being processed")), user(NOTE.format("booked, BK-1001")), user("[System note.]")]

    assert last_note(turns) == Belief(Status.BOOKED, "tomorrow 3pm", "BK-1001")
    assert last_note([user(BOOK), model(NOTE.format("booked"))]) is None


def test_what_the_model_told_the_user_counts_and_not_what_the_user_said() -> None:
    assert last_report([user(BOOK), model(TOLD), user(ASK)]) == Belief(Status.BOOKED, "tomorrow 3pm", "BK-1001")
    assert last_report([user(TOLD)]) is None


def test_a_request_is_open_until_the_model_settles_it() -> None:
    asked = open_request([user(BOOK), model("One moment."), user(ASK)])

    assert asked is not None
    assert asked.slot == "tomorrow 3pm"
    assert open_request([user(BOOK), model(TOLD)]) is None
    assert open_request([user(NOTE.format("booked"))]) is None
