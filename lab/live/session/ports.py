"""What a session needs from outside: a model to talk to, and an ear that finds the end of speech."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lab.live.protocol.messages import Content, FunctionCall, FunctionResponse, ServerMessage


class Model(Protocol):
    """The other side of one session's conversation; it lives as long as the session. Instants are session seconds."""

    def prompt(self, text: str, *, now: float) -> None:
        """Take a complete turn of the user."""

    def history(self, turns: Sequence[Content], *, now: float, answer: bool) -> None:
        """Take turns as they stand; answer the last one at once, or wait for more."""

    def respond(self, responses: Sequence[FunctionResponse], *, now: float) -> tuple[str, ...]:
        """Take what tools answered; gives the ids that nobody asked for."""

    def interrupt(self, *, now: float) -> None:
        """Stop speaking: the user has begun to."""

    def cut_off(self, *, now: float) -> None:
        """Stop, in mid-sentence or not: the connection is gone, and what comes next has to wait for another."""

    def resumed(self, *, now: float) -> None:
        """Go on, with what was cut off too: there is a connection again."""

    def wake(self, *, now: float) -> list[ServerMessage]:
        """What is to be sent by now."""

    def next_at(self) -> float | None:
        """When to wake next, None for not before something else happens."""

    @property
    def speaking(self) -> bool:
        """Whether it is in mid-sentence, as a listener hears it."""

    @property
    def idle(self) -> bool:
        """Whether it neither speaks nor is about to."""

    @property
    def pending(self) -> Mapping[str, FunctionCall]:
        """Calls that await a response, by their ids."""


class SpeechEnd(Protocol):
    """Finds where utterances end."""

    def feed(self, pcm: bytes) -> tuple[bytes, ...]:
        """Take audio, 16 kHz, 16 bits, one channel; gives the utterances that ended in it."""
