"""What comes of a client's message: to the model, to the recogniser, back to the client."""

import pytest

from lab.live.protocol.closing import INVALID_ARGUMENT
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    Content,
    ContextUpdate,
    FunctionResponse,
    Part,
    RealtimeInput,
    ServerMessage,
    Setup,
    ToolResponse,
)
from lab.live.session.commands import Audit
from lab.live.session.conversation import Conversation, Effect, Remark, Utterance
from lab.live.session.profile import DEFAULT, find
from tests.live.session.fakes import FakeEar, FakeModel

MANUAL = {"automaticActivityDetection": {"disabled": True}}


def begin(profile: str = DEFAULT.name, **setup: object) -> tuple[Conversation, FakeModel]:
    model = FakeModel()
    conversation = Conversation(find(profile), model, FakeEar())
    conversation.attach(Setup("m", **setup))  # type: ignore[arg-type] # fields of any type by name
    return conversation, model


def audio(data: bytes, mime_type: str = "audio/pcm;rate=16000") -> RealtimeInput:
    return RealtimeInput(audio=Blob(data, mime_type))


def text_of(effects: list[Effect]) -> list[tuple[str | None, str | None]]:
    """Input and output transcriptions of messages."""
    contents = [effect.server_content for effect in effects if isinstance(effect, ServerMessage)]
    return [
        (
            content.input_transcription.text if content and content.input_transcription else None,
            content.output_transcription.text if content and content.output_transcription else None,
        )
        for content in contents
    ]


def test_typed_text_goes_straight_to_the_model() -> None:
    conversation, model = begin()

    assert conversation.take(RealtimeInput(text="hello"), now=1) == [Remark(Audit.TYPED, {"text": "hello"})]
    assert model.told == [("prompt", "hello")]


@pytest.mark.parametrize("answer", [True, False])
def test_turns_go_to_the_model_as_they_stand(answer: bool) -> None:
    conversation, model = begin()
    turns = (Content("user", (Part("a"),)), Content("model", (Part("b"),)))

    conversation.take(ClientContent(turns, turn_complete=answer), now=1)

    assert model.told == [("history", ("a", "b"), answer)]
    assert [turn.role for turn in conversation.transcript.turns] == ["user", "model"]


def test_speech_is_recognised_at_its_end_and_then_told_to_the_model() -> None:
    conversation, model = begin(input_audio_transcription=True)

    effects = conversation.take(audio(b"\1\1\0\0\0\0"), now=1)
    transcribed = conversation.heard("book it", now=2)

    assert effects == [Utterance(b"\1\1")]
    assert text_of(transcribed) == [("book it", None)]
    assert model.told == [("prompt", "book it")]


def test_transcriptions_are_sent_to_who_asked_for_them() -> None:
    plain, _ = begin()
    asked, _ = begin(output_audio_transcription=True)

    heard = [conversation.heard("hello", now=0) for conversation in (plain, asked)]
    said = [text_of(conversation.wake(now=1)) for conversation in (plain, asked)]

    assert heard == [[], []]
    assert said == [[(None, None)], [(None, "one ")]]
    assert [turn.text for turn in plain.transcript.turns] == ["hello", "one "]


def test_noise_is_no_turn() -> None:
    conversation, model = begin(input_audio_transcription=True)

    assert conversation.heard("  ", now=1) == []
    assert model.told == []


def test_the_older_form_of_audio_is_taken_and_pictures_are_not_listened_to() -> None:
    conversation, _ = begin()
    chunks = (Blob(b"xx", "image/jpeg"), Blob(b"\1\1\0\0\0\0", "audio/pcm"))

    assert conversation.take(RealtimeInput(media_chunks=chunks), now=1) == [Utterance(b"\1\1")]
    assert conversation.take(RealtimeInput(video=Blob(b"xx", "image/jpeg")), now=1) == []
    assert conversation.hearing.audio_s == 6 / 32_000


def test_audio_of_another_rate_is_an_invalid_argument_and_is_not_counted() -> None:
    conversation, _ = begin()

    assert conversation.take(audio(b"\1\1", "audio/pcm;rate=8000"), now=1) == [INVALID_ARGUMENT]
    assert conversation.hearing.audio_s == 0


def test_activity_that_the_client_marks_is_one_utterance() -> None:
    conversation, _ = begin(realtime_input_config=MANUAL)
    conversation.take(RealtimeInput(activity_start=True), now=1)
    conversation.take(audio(b"\1\1\0\0\0\0"), now=2)

    assert conversation.take(RealtimeInput(activity_end=True), now=3) == [Utterance(b"\1\1\0\0\0\0")]


def test_the_end_of_the_stream_ends_the_utterance() -> None:
    conversation, _ = begin()
    conversation.take(audio(b"\1\1"), now=2)

    assert conversation.take(RealtimeInput(audio_stream_end=True), now=3) == [Utterance(b"\1\1")]


@pytest.mark.parametrize("message", [RealtimeInput(text="x"), RealtimeInput(activity_start=True), ClientContent()])
def test_who_talks_while_the_model_speaks_interrupts_it(message: RealtimeInput | ClientContent) -> None:
    conversation, model = begin()
    conversation.heard("hello", now=0)
    conversation.wake(now=1)

    conversation.take(message, now=1.5)

    assert ("interrupt",) in model.told


def test_a_client_may_ask_not_to_interrupt() -> None:
    conversation, model = begin(realtime_input_config={"activityHandling": "NO_INTERRUPTION"})
    conversation.heard("hello", now=0)
    conversation.wake(now=1)

    conversation.heard("wait", now=1.5)

    assert ("interrupt",) not in model.told


def test_who_talks_while_the_model_waits_for_a_tool_interrupts_nothing() -> None:
    conversation, model = begin()
    conversation.heard("book", now=0)
    conversation.wake(now=1)

    conversation.heard("hello", now=2)

    assert list(model.pending) == ["c1"]
    assert ("interrupt",) not in model.told


def test_a_loss_is_told_to_the_model_and_ends_the_turn_that_it_was_in() -> None:
    conversation, model = begin()
    conversation.cut_off(now=0)
    model.resumed(now=0)
    assert model.told == [("cut off", 0), ("resumed",)]

    conversation.heard("hello", now=0)
    conversation.wake(now=1)
    conversation.cut_off(now=1.5)

    assert model.told[-1] == ("cut off", 1.5)
    model.resumed(now=2)
    conversation.wake(now=3)
    assert [(turn.text, turn.complete) for turn in conversation.transcript.turns[1:]] == [
        ("one ", False),
        ("one ", False),
    ]


def response(*ids: str) -> ToolResponse:
    return ToolResponse(tuple(FunctionResponse(name, "book_slot") for name in ids))


def test_a_pending_call_is_answerable_on_the_next_connection() -> None:
    conversation, model = begin()
    conversation.heard("book", now=0)
    conversation.wake(now=1)
    conversation.attach(Setup("m"))

    assert conversation.take(response("c1"), now=154) == []
    assert model.told[-1] == ("respond", ("c1",))
    assert model.pending == {}


def test_where_old_calls_are_ignored_only_the_old_ones_are() -> None:
    conversation, model = begin("old-call-ignored")
    conversation.heard("book", now=0)
    conversation.wake(now=1)
    conversation.attach(Setup("m"))

    effects = conversation.take(response("c1", "c9"), now=2)

    assert effects == [Remark(Audit.OLD_RESULT, {"ids": ["c1"]}), Remark(Audit.UNKNOWN_RESULT, {"ids": ["c9"]})]
    assert model.told[-1] == ("respond", ("c9",))


def test_on_its_own_connection_a_call_is_not_old() -> None:
    conversation, model = begin("old-call-ignored")
    conversation.heard("book", now=0)
    conversation.wake(now=1)

    assert conversation.take(response("c1"), now=2) == []
    assert model.pending == {}


def test_a_context_update_changes_nothing() -> None:
    conversation, model = begin()

    assert conversation.take(ContextUpdate(), now=1) == []
    assert model.told == []
