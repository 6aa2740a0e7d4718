"""A stage for the model: what it is given at which instant, and what comes of it, one line per message.

Lines look like ``1.500 call c1 tomorrow 3pm``; audio is one line per sentence, at its first piece.
"""

import itertools
import random
from collections.abc import Callable, Collection

from lab.live.model.manner import Manner
from lab.live.model.scripted import TOOL, ScriptedModel
from lab.live.protocol.messages import Content, FunctionResponse, Part, ServerMessage

EXACT = Manner(
    call_s=(0.5, 0.5),
    reply_s=(1.0, 1.0),
    announce_s=(0.6, 0.6),
    restored_reply_s=(0.9, 0.9),
    reissue_s=(0.7, 0.7),
    redo_s=(0.4, 0.4),
)
"""Without chance, so that a test can say when."""

BOOK = "Book me the 3pm slot tomorrow, please."

ASK = "Did you book it?"

BOOKED = {"status": "booked", "slot": "tomorrow 3pm", "confirmation_id": "BK-1001"}


def user(text: str) -> Content:
    return Content("user", (Part(text=text),))


def said(text: str) -> Content:
    return Content("model", (Part(text=text),))


def result(call_id: str | None, name: str = TOOL, **response: object) -> FunctionResponse:
    return FunctionResponse(call_id, name, response or BOOKED)


class Stage:
    """A model, its clock and what it said.

    Args:
        manner: Its timing.
        tools: What the setup declared.
        uniform: Its chance; the lower end where None is given.
    """

    def __init__(
        self,
        manner: Manner = EXACT,
        tools: Collection[str] = (TOOL,),
        uniform: Callable[[float, float], float] | None = None,
    ) -> None:
        ids = itertools.count(1)
        self.model = ScriptedModel(manner, tools, uniform or (lambda low, _: low), lambda: f"c{next(ids)}")
        self.messages: list[tuple[float, ServerMessage]] = []

    def until(self, now: float) -> "Stage":
        """Wake it whenever it asks to, up to an instant."""
        while (at := self.model.next_at()) is not None and at <= now:
            before = len(self.messages)
            self.messages += [(at, message) for message in self.model.wake(now=at)]
            assert len(self.messages) > before or self.model.next_at() != at, "it asks to be woken and has nothing"
        return self

    @property
    def lines(self) -> list[str]:
        """All that came, in words."""
        return [line for at, message in self.messages for line in describe(at, message)]

    @property
    def words(self) -> str:
        """All that was said so far."""
        contents = [message.server_content for _, message in self.messages if message.server_content]
        return "".join(each.output_transcription.text for each in contents if each.output_transcription)

    @property
    def audio(self) -> list[tuple[float, bytes]]:
        """Pieces of audio and when they came."""
        return [
            (at, part.inline_data.data)
            for at, message in self.messages
            if message.server_content and message.server_content.model_turn
            for part in message.server_content.model_turn.parts
            if part.inline_data
        ]


def describe(at: float, message: ServerMessage) -> list[str]:
    """A message in words: what kind it is, and what it carries."""
    content, found = message.server_content, []
    if message.tool_call:
        found += [f"call {call.id} {call.args['slot']}" for call in message.tool_call.function_calls]
    if message.tool_call_cancellation:
        found += [f"cancel {' '.join(message.tool_call_cancellation.ids)}"]
    if content:
        found += ["audio"] if content.model_turn else []
        found += ["words"] if content.output_transcription else []
        found += ["interrupted"] if content.interrupted else []
        found += ["generated"] if content.generation_complete else []
        found += ["complete"] if content.turn_complete else []
    return [f"{at:.3f} {line}" for line in found]


def seeded(seed: int) -> Callable[[float, float], float]:
    return random.Random(seed).uniform
