"""What was said, turn by turn."""

from lab.live.protocol.messages import Content, Part, ServerContent, Transcription
from lab.live.session.transcript import KEPT_TURNS, Transcript, Turn


def says(text: str, *, turn_complete: bool = False) -> ServerContent:
    return ServerContent(output_transcription=Transcription(text), turn_complete=turn_complete)


def test_pieces_of_the_models_turn_become_one_turn() -> None:
    transcript = Transcript()
    transcript.user("Book it.", now=1)
    transcript.model(says("I am "), now=2)
    transcript.model(says("booking."), now=3)
    transcript.model(ServerContent(turn_complete=True), now=4)
    transcript.model(says("Done.", turn_complete=True), now=5)

    assert transcript.turns == (
        Turn("user", "Book it.", 1),
        Turn("model", "I am booking.", 2),
        Turn("model", "Done.", 5),
    )


def test_a_turn_that_was_interrupted_or_cut_off_stays_incomplete_and_is_not_continued() -> None:
    transcript = Transcript()
    transcript.model(says("one"), now=1)
    transcript.model(ServerContent(interrupted=True), now=2)
    transcript.model(says("two"), now=3)
    transcript.cut_off()
    transcript.model(says("three"), now=4)
    transcript.user("Stop.", now=5)
    transcript.model(ServerContent(turn_complete=True), now=6)

    assert [(turn.text, turn.complete) for turn in transcript.turns] == [
        ("one", False),
        ("two", False),
        ("three", False),
        ("Stop.", True),
    ]


def test_text_counts_where_there_is_no_transcription_and_audio_alone_says_nothing() -> None:
    transcript = Transcript()
    transcript.model(ServerContent(model_turn=Content("model", (Part("hello"),))), now=1)
    transcript.model(ServerContent(model_turn=Content("model", (Part(),))), now=2)

    assert [turn.text for turn in transcript.turns] == ["hello"]


def test_restored_turns_keep_their_roles() -> None:
    transcript = Transcript()
    transcript.restored((Content("model", (Part("a"),)), Content(None, (Part("b"),))), now=1)

    assert [(turn.role, turn.text) for turn in transcript.turns] == [("model", "a"), ("user", "b")]


def test_old_turns_are_forgotten() -> None:
    transcript = Transcript()
    for n in range(KEPT_TURNS + 5):
        transcript.user(str(n), now=n)

    assert [transcript.turns[0].text, transcript.turns[-1].text] == ["5", str(KEPT_TURNS + 4)]
