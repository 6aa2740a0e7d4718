"""How a booking stands, read from responses and notes."""

from dataclasses import replace

import pytest

from lab.live.model.belief import Belief, Status, is_note, noted, reported, told
from lab.live.recovery import restore
from lab.live.recovery.ledger import Job, Progress
from tests.live.model.stage import ASK, BOOK


@pytest.mark.parametrize("text", [restore.INTRO, restore.UPDATE_INTRO, "Note: x", "(status update) x", "SYSTEM: x"])
def test_a_note_is_known_by_its_beginning(text: str) -> None:
    assert is_note(text)


@pytest.mark.parametrize("text", [BOOK, ASK, "What is the status?", "Can you update me?", "", "I noted it"])
def test_what_a_user_says_is_no_note(text: str) -> None:
    assert not is_note(text)


JOB = Job(1, "k", "c1", "book_slot", {"slot": "tomorrow at 3pm"}, 0.0)

BOOKED = {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (JOB, Belief(Status.PROCESSING, "tomorrow 3pm")),
        (
            replace(JOB, progress=Progress.DONE, finished_at=4.0, response=BOOKED),
            Belief(Status.BOOKED, "tomorrow 3pm", "BK-1001"),
        ),
        (
            replace(JOB, progress=Progress.FAILED, finished_at=4.0, response={"reason": "the slot is taken"}),
            Belief(Status.FAILED, "tomorrow 3pm"),
        ),
    ],
)
def test_the_notes_of_the_labs_own_client_are_understood(job: Job, expected: Belief) -> None:
    assert noted(restore.history((), [job]).turns[-1].text) == expected
    assert noted(restore.update_note([job]).turns[-1].text) == expected


def test_only_status_lines_count_and_the_last_one_holds() -> None:
    note = "\n".join(
        [
            restore.INTRO,
            "- book_slot (slot: monday 10am): still being processed",
            "- book_slot (slot: tomorrow at 3pm): booked, confirmation_id BK-1001",
            "Say that nothing failed, that it is booked.",
            restore.OUTRO,
        ]
    )

    assert noted(note) == Belief(Status.BOOKED, "tomorrow 3pm", "BK-1001")


@pytest.mark.parametrize("text", [restore.OUTRO, restore.NOTHING, restore.UPDATE_OUTRO, "", "\n\n", "It is booked."])
def test_a_note_without_a_status_line_says_nothing(text: str) -> None:
    assert noted(f"{restore.INTRO}\n{text}") is None


def test_a_note_in_one_line_is_read_by_sentences() -> None:
    text = "System note: the connection was lost. book_slot tomorrow 3pm: booked, BK-7. Do not book anything again."

    assert noted(text) == Belief(Status.BOOKED, "tomorrow 3pm", "BK-7")


def test_a_confirmation_alone_is_a_booking_and_a_strange_response_is_unclear() -> None:
    assert told("3pm", {"confirmation_id": "BK-1"}).status is Status.BOOKED
    assert told("3pm", {}).status is Status.UNCLEAR
    assert told("3pm", {"status": None, "result": ["x"]}).status is Status.UNCLEAR


def test_the_models_own_words_say_how_a_booking_came_out() -> None:
    booked = Belief(Status.BOOKED, "tomorrow 3pm", "BK-1001")

    assert reported("Done: the 3 pm slot tomorrow is booked. The confirmation is BK-1001.") == booked
    assert reported("Sorry, booking the 3 pm slot failed.") == Belief(Status.FAILED, "3pm")
    assert reported("I'm booking the 3 pm slot for you now.") is None
    assert reported("I haven't booked anything yet.") is None
