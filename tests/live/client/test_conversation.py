from lab.live.client.conversation import Conversation
from lab.live.client.events import Events
from lab.live.clock import Clock
from lab.live.protocol.messages import Blob, Content, Part, ServerContent, Transcription


class Wall:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Talked:
    """A conversation at instants that the test sets; its events carry the machine's own."""

    def __init__(self) -> None:
        self.wall = Wall()
        self.clock = Clock(self.wall)
        self.events = Events(self.clock, lambda *_, **__: None)
        self.conversation = Conversation(self.clock, self.events)

    def at(self, now: float, content: ServerContent, attempt: int = 1) -> None:
        self.wall.now = now
        self.conversation.on_content(content, attempt)

    def names(self) -> list[str]:
        return [event.name for event in self.events.log]


def sound(seconds: float, text: str = "") -> ServerContent:
    blob = Blob(bytes(round(seconds * 48_000)), "audio/pcm;rate=24000")
    transcription = Transcription(text) if text else None
    return ServerContent(Content("model", (Part(inline_data=blob),)), output_transcription=transcription)


def test_a_turn_is_told_whole_when_it_is_complete() -> None:
    talked = Talked()
    talked.at(1.0, sound(0.1, "It is "))
    talked.at(1.1, sound(0.1, "booked."))
    talked.at(1.3, ServerContent(turn_complete=True))

    assert talked.names() == ["audio_first", "model_said", "turn_complete"]
    assert talked.events.log[1].fields == {"text": "It is booked."}
    assert talked.conversation.latest is not None
    assert talked.conversation.latest.began_t == 1.0


def test_each_turn_has_a_first_sound() -> None:
    talked = Talked()
    for now in (1.0, 2.0):
        talked.at(now, sound(0.1, "Yes."))
        talked.at(now, ServerContent(turn_complete=True))

    assert talked.names().count("audio_first") == 2


def test_an_interrupted_turn_is_not_told_as_said() -> None:
    talked = Talked()
    talked.at(1.0, sound(0.1, "It is"))
    talked.at(1.1, ServerContent(interrupted=True))
    talked.at(1.2, ServerContent(turn_complete=True))

    assert talked.names() == ["audio_first", "interrupted", "turn_complete"]
    assert not talked.conversation.model_speaks


def test_a_turn_that_a_loss_cuts_off_stays_marked_in_the_transcript() -> None:
    talked = Talked()
    talked.conversation.typed("Did you book it?")
    talked.at(1.0, sound(0.1, "I am"))
    talked.conversation.lost(1.0)

    assert [(turn.role, turn.text, turn.cut_off) for turn in talked.conversation.transcript.turns] == [
        ("user", "Did you book it?", False),
        ("model", "I am", True),
    ]
    assert talked.names() == ["audio_first", "cut_off"]


def test_the_gap_is_told_with_the_first_sound_after_it() -> None:
    talked = Talked()
    talked.conversation.lost(10.0)
    talked.at(16.5, sound(0.1), attempt=6)
    talked.at(16.6, sound(0.1), attempt=6)

    gaps = [event.fields for event in talked.events.log if event.name == "gap"]
    assert gaps == [{"heard_gap_s": 6.5, "first_audio_s": 6.5}]


def test_what_was_buffered_shortens_the_gap_that_is_heard() -> None:
    talked = Talked()
    talked.at(1.0, sound(3.0))
    talked.conversation.lost(2.0)
    talked.at(7.0, sound(0.1))

    (gap,) = [event.fields for event in talked.events.log if event.name == "gap"]
    assert gap == {"heard_gap_s": 3.0, "first_audio_s": 5.0}


def test_what_the_server_heard_is_the_users_turn() -> None:
    talked = Talked()
    talked.at(1.0, ServerContent(input_transcription=Transcription("book me the ")))
    talked.at(1.1, ServerContent(input_transcription=Transcription("three p m slot")))

    assert [turn.text for turn in talked.conversation.transcript.turns] == ["book me the three p m slot"]


def test_a_model_that_answers_in_text_is_understood_too() -> None:
    talked = Talked()
    talked.at(1.0, ServerContent(Content("model", (Part(text="Booked."),)), turn_complete=True))

    assert talked.names() == ["model_said", "turn_complete"]
