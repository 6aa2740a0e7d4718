"""What is said on both sides, and what the user hears of it, whatever connections it takes."""

from dataclasses import dataclass

from lab.live.client.events import Events
from lab.live.clock import Clock
from lab.live.protocol.messages import ServerContent
from lab.live.recovery.playback import Playback
from lab.live.recovery.transcript import Transcript


@dataclass(slots=True)
class Answer:
    """A turn of the model's that is complete."""

    text: str
    began_t: float
    """Session time of its first word or sound."""


class Conversation:
    """Keeps the transcript, plays the sound, and tells turns.

    Args:
        clock: Session time.
        events: Where they are told.
    """

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self.transcript = Transcript()
        self.playback = Playback()
        self.latest: Answer | None = None
        """The model's latest complete turn."""

        self._turn: Answer | None = None
        """The model's present turn, as far as it is known here."""

        self._audible = False
        self._gap_told = True

    @property
    def model_speaks(self) -> bool:
        """Whether a turn of the model's is under way."""
        return self._turn is not None

    def typed(self, text: str) -> None:
        """The user typed something."""
        self.transcript.complete()
        self.transcript.user(text)

    def on_content(self, content: ServerContent, attempt: int) -> None:
        """The model said something, or the server tells what it heard."""
        if content.input_transcription is not None and content.input_transcription.text:
            self._events.tell("heard", text=content.input_transcription.text)
            self.transcript.user(content.input_transcription.text)
        if octets := _sound(content):
            self._sound(octets, attempt)
        if text := _words(content):
            self._present().text += text
            self.transcript.model(text)
        if content.interrupted:
            self.playback.interrupted(now=self._clock.now())
            self._events.tell("interrupted", text=self._finish())
        if content.turn_complete:
            if text := self._finish():
                self._events.tell("model_said", text=text)
            self._events.tell("turn_complete", attempt=attempt)

    def lost(self, silent_since: float) -> None:
        """The connection is lost; a turn that is open will not be finished.

        Args:
            silent_since: Session time of the last that was heard on it.
        """
        if self._turn is not None:
            self._events.tell("cut_off", text=self._turn.text.strip())
        self.transcript.lost()
        self.playback.lost(silent_since)
        self._turn, self._audible, self._gap_told = None, False, False

    def _sound(self, octets: int, attempt: int) -> None:
        self._present()
        self.playback.audio(octets, now=self._clock.now())
        if not self._audible:
            self._audible = True
            self._events.tell("audio_first", attempt=attempt)
        gap = self.playback.gap
        if not self._gap_told and gap is not None and gap.heard_s is not None and gap.first_audio_s is not None:
            self._gap_told = True
            heard_gap_s, first_audio_s = round(gap.heard_s, 6), round(gap.first_audio_s, 6)
            self._events.tell("gap", heard_gap_s=heard_gap_s, first_audio_s=first_audio_s)

    def _present(self) -> Answer:
        if self._turn is None:
            self._turn = Answer("", self._clock.now())
        return self._turn

    def _finish(self) -> str:
        self.transcript.complete()
        self._audible = False
        if self._turn is None:
            return ""
        self._turn.text = self._turn.text.strip()
        self.latest, self._turn = self._turn, None
        return self.latest.text


def _sound(content: ServerContent) -> int:
    """Octets of audio."""
    parts = () if content.model_turn is None else content.model_turn.parts
    return sum(len(part.inline_data.data) for part in parts if part.inline_data is not None)


def _words(content: ServerContent) -> str:
    """What the model says, in text: its transcription, or a text answer."""
    spoken = "" if content.output_transcription is None else content.output_transcription.text
    return spoken or ("" if content.model_turn is None else content.model_turn.text)
