"""What was said, turn by turn, as the client heard it from both transcriptions: all that a new session can be told."""

from collections import deque
from dataclasses import dataclass, replace

KEPT_TURNS = 200
"""Turns remembered, as on the lab's server; a restored session is told six, and a client may run for a day."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One side's words."""

    role: str
    """user or model, as in ``Content``."""

    text: str
    cut_off: bool = False
    """The model was in mid-turn when its connection was lost."""


class Transcript:
    """Grows by pieces; ``turns`` are the words so far."""

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque(maxlen=KEPT_TURNS)
        self._open = False
        """The latest turn may grow still."""

    def user(self, text: str) -> None:
        """A piece of what the user said or typed."""
        self._add("user", text)

    def model(self, text: str) -> None:
        """A piece of what the model says."""
        self._add("model", text)

    def complete(self) -> None:
        """The model's turn is complete, or was interrupted: what comes next is another turn."""
        self._open = False

    def lost(self) -> None:
        """The connection is lost: a model turn that is open was cut off."""
        if self._open and self._turns[-1].role == "model":
            self._turns[-1] = replace(self._turns[-1], cut_off=True)
        self._open = False

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The latest turns that have words, oldest first."""
        return tuple(replace(turn, text=turn.text.strip()) for turn in self._turns if turn.text.strip())

    def _add(self, role: str, text: str) -> None:
        if self._open and self._turns[-1].role == role:
            self._turns[-1] = replace(self._turns[-1], text=self._turns[-1].text + text)
        else:
            self._turns.append(Turn(role, text))
        self._open = True
