"""Pieces become turns, and a loss cuts off the model's."""

from lab.live.recovery.transcript import KEPT_TURNS, Transcript, Turn


def test_pieces_of_one_side_are_one_turn_until_the_other_speaks() -> None:
    transcript = Transcript()
    transcript.user("Book me the 3pm slot")
    transcript.user(" tomorrow, please.")
    transcript.model("I'm booking ")
    transcript.model("it.")

    assert transcript.turns == (
        Turn("user", "Book me the 3pm slot tomorrow, please."),
        Turn("model", "I'm booking it."),
    )


def test_a_complete_turn_is_followed_by_another_one() -> None:
    transcript = Transcript()
    transcript.model("One.")
    transcript.complete()
    transcript.model("Two.")

    assert [turn.text for turn in transcript.turns] == ["One.", "Two."]


def test_a_loss_cuts_off_the_turn_that_the_model_is_in() -> None:
    transcript = Transcript()
    transcript.model("I am just boo")
    transcript.lost()
    transcript.model("Yes.")

    assert transcript.turns == (Turn("model", "I am just boo", cut_off=True), Turn("model", "Yes."))


def test_a_loss_cuts_off_neither_a_complete_turn_nor_the_users() -> None:
    transcript = Transcript()
    transcript.lost()
    transcript.model("Done.")
    transcript.complete()
    transcript.lost()
    transcript.user("Did you")
    transcript.lost()
    transcript.user("book it?")

    assert [(turn.text, turn.cut_off) for turn in transcript.turns] == [
        ("Done.", False),
        ("Did you", False),
        ("book it?", False),
    ]


def test_turns_without_words_are_none() -> None:
    transcript = Transcript()
    transcript.user("  ")
    transcript.model("")

    assert transcript.turns == ()


def test_a_long_talk_is_remembered_by_its_end() -> None:
    transcript = Transcript()
    for number in range(2 * KEPT_TURNS):
        transcript.user(f"question {number}")
        transcript.model(f"answer {number}")

    assert len(transcript.turns) == KEPT_TURNS
    assert transcript.turns[-1].text == f"answer {2 * KEPT_TURNS - 1}"
