"""A whole server, with the model that the lab's servers have: the study's story on the wire."""

import itertools

from lab.live.model.manner import Manner
from lab.live.model.scripted import ScriptedModel
from lab.live.model.speech import EndOfSpeech
from lab.live.protocol.messages import (
    FunctionResponse,
    RealtimeInput,
    ServerMessage,
    SessionResumption,
    Setup,
    ToolResponse,
)
from lab.live.session.commands import Command, Send
from lab.live.session.house import House
from lab.live.session.profile import DEFAULT, Profile
from lab.live.session.states import Detach

BOOKED = {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}


class Story:
    """A house, its clock, and what each connection was sent."""

    def __init__(self) -> None:
        names = itertools.count(1)
        self.now = 0.0
        self.sent: list[tuple[int, float, ServerMessage]] = []
        self.house = House(
            DEFAULT,
            token=lambda: f"handle-{next(names)}",
            uniform=lambda low, high: (low + high) / 2,
            model=self._model,
            speech=EndOfSpeech,
        )

    def _model(self, profile: Profile, _setup: Setup) -> ScriptedModel:
        ids = itertools.count(1)
        return ScriptedModel(
            Manner.of(profile), {"book_slot"}, lambda low, high: (low + high) / 2, lambda: f"call-{next(ids)}"
        )

    def until(self, instant: float) -> None:
        while (at := self.house.next_at()) is not None and at <= instant:
            self.now = at
            self.take(self.house.wake(now=at))
        self.now = instant

    def take(self, commands: list[Command]) -> None:
        self.sent += [(one.connection, self.now, one.message) for one in commands if isinstance(one, Send)]

    def dial(self, number: int, handle: str | None = None) -> None:
        setup = Setup("m", session_resumption=SessionResumption(handle), output_audio_transcription=True)
        self.take(self.house.opened(number, now=self.now))
        self.take(self.house.receive(number, setup, now=self.now))

    def type(self, number: int, text: str) -> None:
        self.take(self.house.receive(number, RealtimeInput(text=text), now=self.now))

    def result(self, number: int) -> None:
        response = ToolResponse((FunctionResponse("call-1", "book_slot", BOOKED),))
        self.take(self.house.receive(number, response, now=self.now))

    def calls(self, number: int) -> list[str | None]:
        called = [message.tool_call for to, _, message in self.sent if to == number]
        return [call.id for tool_call in called if tool_call is not None for call in tool_call.function_calls]

    def said(self, number: int) -> str:
        contents = [message.server_content for to, _, message in self.sent if to == number]
        texts = [content.output_transcription for content in contents if content is not None]
        return "".join(found.text for found in texts if found is not None)


def begun() -> Story:
    story = Story()
    story.dial(1)
    story.until(1)
    story.type(1, "Book me the 3pm slot tomorrow, please.")
    story.until(3)
    assert story.calls(1) == ["call-1"]
    return story


def test_a_result_is_accepted_after_a_resume_and_the_question_answered_from_it() -> None:
    story = begun()
    story.take(story.house.detach(1, Detach.RST, now=story.now))
    story.until(4.6)
    story.dial(2, "handle-1")
    story.until(6)
    story.result(2)
    story.until(16)
    story.type(2, "Did you book it?")
    story.until(30)

    assert story.calls(2) == []
    assert "booked" in story.said(2).lower()
    assert story.house.status(now=30).sessions[0].pending == ()


def test_resumed_and_told_nothing_the_model_is_still_booking() -> None:
    story = begun()
    story.take(story.house.detach(1, Detach.RST, now=story.now))
    story.until(4.6)
    story.dial(2, "handle-1")
    story.until(7)
    story.type(2, "Did you book it?")
    story.until(20)

    assert "booking" in story.said(2).lower()
    assert story.calls(2) == []


def test_a_call_that_was_about_to_be_made_at_the_loss_is_made_on_the_next_connection() -> None:
    story = Story()
    story.dial(1)
    story.until(1)
    story.type(1, "Book me the 3pm slot tomorrow, please.")
    story.until(1.1)
    story.take(story.house.detach(1, Detach.FIN, now=story.now))
    story.until(5)
    story.dial(2, "handle-1")
    story.until(10)

    assert (story.calls(1), story.calls(2)) == ([], ["call-1"])


def test_with_the_model_speaking_the_immediate_resume_is_accepted() -> None:
    story = begun()
    story.type(1, "What should I bring?")
    story.until(5.5)
    assert story.house.status(now=story.now).sessions[0].speaking
    story.take(story.house.detach(1, Detach.RST, now=story.now))
    story.dial(2, "handle-1")
    story.until(7)

    completed = [at for to, at, message in story.sent if to == 2 and message.setup_complete is not None]
    assert len(completed) == 1
    assert DEFAULT.resume_setup_s[0] <= completed[0] - 5.5 <= DEFAULT.resume_setup_s[1]
