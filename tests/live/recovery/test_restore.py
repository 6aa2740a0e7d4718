"""A new session hears the last turns, then how things stand, from the backend."""

from lab.live.recovery.ledger import Job, Progress
from lab.live.recovery.restore import CUT_OFF, INTRO, NOTHING, OUTRO, history, status_line, update_note
from lab.live.recovery.transcript import Turn

ASKED = Turn("user", "Book me the 3pm slot tomorrow, please.")
PENDING = Job(1, "k", "c1", "book_slot", {"slot": "tomorrow 3pm"}, 100.0)
BOOKED = Job(
    1,
    "k",
    "c1",
    "book_slot",
    {"slot": "tomorrow 3pm"},
    100.0,
    Progress.DONE,
    104.0,
    {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"},
)
FAILED = Job(
    1, "k", "c1", "book_slot", {"slot": "tomorrow 3pm"}, 100.0, Progress.FAILED, 104.0, {"reason": "the slot is taken"}
)


def test_a_status_line_says_what_was_asked_and_what_became_of_it() -> None:
    assert status_line(PENDING) == "- book_slot (slot: tomorrow 3pm): still being processed"
    assert status_line(BOOKED) == "- book_slot (slot: tomorrow 3pm): booked, confirmation_id BK-1001"
    assert (
        status_line(FAILED) == "- book_slot (slot: tomorrow 3pm): failed, nothing was changed, reason the slot is taken"
    )


def test_a_backend_that_names_no_status_has_done_it() -> None:
    done = Job(1, "k", "c1", "light_on", {}, 100.0, Progress.DONE, 101.0, {})

    assert status_line(done) == "- light_on (): done"


def test_the_history_ends_with_the_note_and_wants_an_answer() -> None:
    content = history([ASKED, Turn("model", "I'm boo", cut_off=True)], [BOOKED])

    assert content.turn_complete
    assert [(turn.role, turn.text) for turn in content.turns] == [
        ("user", ASKED.text),
        ("model", f"I'm boo {CUT_OFF}"),
        ("user", "\n".join([INTRO, status_line(BOOKED), OUTRO])),
    ]


def test_only_the_last_six_turns_are_told() -> None:
    turns = [Turn("user" if number % 2 else "model", str(number)) for number in range(10)]

    assert [turn.text for turn in history(turns, []).turns[:-1]] == ["4", "5", "6", "7", "8", "9"]


def test_a_note_without_side_effects_says_so() -> None:
    assert NOTHING in history([ASKED], []).turns[-1].text
    assert NOTHING not in history([ASKED], [PENDING]).turns[-1].text


def test_without_the_note_there_is_the_talk_alone() -> None:
    content = history([ASKED], [BOOKED], note=False)

    assert [turn.text for turn in content.turns] == [ASKED.text]
    assert content.turn_complete


def test_an_update_is_one_user_turn_that_wants_an_answer() -> None:
    content = update_note([BOOKED, FAILED])

    assert content.turn_complete
    assert [turn.role for turn in content.turns] == ["user"]
    assert content.turns[0].text.splitlines()[1:-1] == [status_line(BOOKED), status_line(FAILED)]
