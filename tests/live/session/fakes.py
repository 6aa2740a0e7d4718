"""A model and an ear that do what a test says, at round instants."""

from collections.abc import Mapping, Sequence

from lab.live.protocol.messages import (
    Content,
    FunctionCall,
    FunctionResponse,
    ServerContent,
    ServerMessage,
    ToolCall,
    ToolCallCancellation,
    Transcription,
)
from lab.live.session.ports import Model, SpeechEnd

QUIET_TO_END = 4
"""Octets of silence after which the ear calls an utterance ended."""


class FakeModel:
    """Answers ``book`` with a call after 1 s, anything else with "one " after 1 s, "two" after 2 s, done after 4 s."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self._plan: list[tuple[float, ServerMessage | None, bool]] = []
        """When, what, and whether it speaks from then on."""
        self._pending: dict[str, FunctionCall] = {}
        self._calls = 0
        self._speaking = False
        self._cut = False
        self._away = False

    def prompt(self, text: str, *, now: float) -> None:
        self.told.append(("prompt", text))
        self._answer(text, now)

    def history(self, turns: Sequence[Content], *, now: float, answer: bool) -> None:
        self.told.append(("history", tuple(turn.text for turn in turns), answer))
        if answer:
            self._answer(turns[-1].text if turns else "", now)

    def respond(self, responses: Sequence[FunctionResponse], *, now: float) -> tuple[str, ...]:
        self.told.append(("respond", tuple(response.id for response in responses)))
        unknown = tuple(response.id or "" for response in responses if response.id not in self._pending)
        for response in responses:
            if self._pending.pop(response.id or "", None) is not None:
                self._talk(now)
        return unknown

    def interrupt(self, *, now: float) -> None:
        self.told.append(("interrupt",))
        ids, self._pending = tuple(self._pending), {}
        cancelled = ToolCallCancellation(ids) if ids else None
        stopped = ServerMessage(server_content=ServerContent(interrupted=True), tool_call_cancellation=cancelled)
        self._plan = [(now, stopped, False)]
        self._speaking = False

    def cut_off(self, *, now: float) -> None:
        self.told.append(("cut off", now))
        if self._speaking:
            self._plan.clear()
        self._speaking, self._cut, self._away = False, self._cut or self._speaking, True

    def resumed(self, *, now: float) -> None:
        self.told.append(("resumed",))
        self._away = False
        if self._cut:
            self._cut = False
            self._talk(now)

    def wake(self, *, now: float) -> list[ServerMessage]:
        if self._away:
            return []
        due = [step for step in self._plan if step[0] <= now]
        self._plan = [step for step in self._plan if step[0] > now]
        for _, message, speaking in due:
            self._speaking = speaking
            if message is not None and message.tool_call is not None:
                self._pending |= {call.id or "": call for call in message.tool_call.function_calls}
        return [message for _, message, _ in due if message is not None]

    def next_at(self) -> float | None:
        return None if self._away else min((at for at, _, _ in self._plan), default=None)

    @property
    def speaking(self) -> bool:
        return self._speaking

    @property
    def idle(self) -> bool:
        return not self._plan and not self._speaking

    @property
    def pending(self) -> Mapping[str, FunctionCall]:
        return self._pending

    def _answer(self, text: str, now: float) -> None:
        if "book" not in text:
            self._talk(now)
            return
        self._calls += 1
        call = FunctionCall(f"c{self._calls}", "book_slot", {"slot": "tomorrow 3pm"})
        self._plan.append((now + 1, ServerMessage(tool_call=ToolCall((call,))), self._speaking))

    def _talk(self, now: float) -> None:
        self._plan += [
            (now + 1, _says("one "), True),
            (now + 2, _says("two"), True),
            (now + 4, ServerMessage(server_content=ServerContent(turn_complete=True)), False),
        ]


def _says(text: str) -> ServerMessage:
    return ServerMessage(server_content=ServerContent(output_transcription=Transcription(text)))


class FakeEar:
    """Calls an utterance ended after some octets of silence; the utterance is what was no silence."""

    def __init__(self) -> None:
        self._loud = b""
        self._quiet = 0

    def feed(self, pcm: bytes) -> tuple[bytes, ...]:
        loud = pcm.replace(b"\0", b"")
        self._loud += loud
        trailing = len(pcm) - len(pcm.rstrip(b"\0"))
        self._quiet = trailing if loud else self._quiet + trailing
        if not self._loud or self._quiet < QUIET_TO_END:
            return ()
        found, self._loud = self._loud, b""
        return (found,)


def _fit(model: FakeModel, ear: FakeEar) -> tuple[Model, SpeechEnd]:
    """The type checker says whether they are what a session asks for."""
    return model, ear
