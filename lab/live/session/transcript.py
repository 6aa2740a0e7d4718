"""What was said in a session, as its server knows it."""

from collections import deque
from dataclasses import dataclass, replace

from lab.live.protocol.messages import Content, ServerContent

KEPT_TURNS = 200
"""Turns remembered; a scenario has a dozen."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody's turn, or what there is of it so far."""

    role: str
    """user or model."""

    text: str
    at: float
    """When it began, session seconds."""

    complete: bool = True
    """False while it goes on, and for good where it was cut off."""


class Transcript:
    """The turns of both sides, oldest first."""

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque(maxlen=KEPT_TURNS)
        self._open = False
        """Whether the model's latest turn may go on."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All that is remembered."""
        return tuple(self._turns)

    def user(self, text: str, *, now: float) -> None:
        """Add what the user said or typed."""
        self._turns.append(Turn("user", text, now))
        self._open = False

    def restored(self, turns: tuple[Content, ...], *, now: float) -> None:
        """Add turns that a client brought along."""
        self._turns.extend(Turn(turn.role or "user", turn.text, now) for turn in turns)
        self._open = False

    def model(self, content: ServerContent, *, now: float) -> None:
        """Add a piece of the model's turn, or end it."""
        if text := spoken(content):
            self._extend(text, now)
        if (content.turn_complete or content.interrupted) and self._open:
            self._turns[-1] = replace(self._turns[-1], complete=not content.interrupted)
            self._open = False

    def cut_off(self) -> None:
        """End the model's turn where it stands."""
        self._open = False

    def _extend(self, text: str, now: float) -> None:
        if self._open:
            self._turns[-1] = replace(self._turns[-1], text=self._turns[-1].text + text)
        else:
            self._turns.append(Turn("model", text, now, complete=False))
            self._open = True


def spoken(content: ServerContent) -> str:
    """The words of a piece: its transcription, else its text."""
    if content.output_transcription is not None:
        return content.output_transcription.text
    return content.model_turn.text if content.model_turn is not None else ""
