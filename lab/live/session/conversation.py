"""What is said in a session, whichever connection carries it: audio and text in, the model's messages out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.live.protocol import closing
from lab.live.protocol.closing import Closing
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    ContextUpdate,
    RealtimeInput,
    ServerContent,
    ServerMessage,
    Setup,
    ToolResponse,
    Transcription,
)
from lab.live.session.commands import Audit
from lab.live.session.hearing import Hearing, acceptable
from lab.live.session.ports import Model, SpeechEnd
from lab.live.session.profile import OldCall, Profile, UnknownResult
from lab.live.session.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Utterance:
    """Speech that has ended and is to be recognised."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class Remark:
    """Something for the audit log."""

    event: Audit
    fields: Mapping[str, Any]


Effect = ServerMessage | Closing | Utterance | Remark
"""What comes of a message; the session knows the connection."""

Input = ClientContent | RealtimeInput | ToolResponse | ContextUpdate


class Conversation:
    """One session's words and calls.

    Args:
        profile: How the server behaves.
        model: Who answers.
        speech: Finds the end of an utterance.
    """

    def __init__(self, profile: Profile, model: Model, speech: SpeechEnd) -> None:
        self._profile = profile
        self._setup = Setup("")
        self._old_calls: frozenset[str] = frozenset()
        self.model = model
        self.hearing = Hearing(speech)
        self.transcript = Transcript()

    def attach(self, setup: Setup) -> None:
        """Follow another connection's wishes; calls that are pending now belong to a former one."""
        self._setup = setup
        self._old_calls = frozenset(self.model.pending)
        self.hearing.manual = _flag(setup.realtime_input_config, "automaticActivityDetection", "disabled")

    def cut_off(self, *, now: float) -> None:
        """Lose the connection."""
        if self.model.speaking:
            self.transcript.cut_off()
        # In silence too: a call that it is about to make would go nowhere.
        self.model.cut_off(now=now)

    def take(self, message: Input, *, now: float) -> list[Effect]:
        """What comes of a client's message."""
        if isinstance(message, RealtimeInput):
            return self._realtime(message, now)
        if isinstance(message, ToolResponse):
            return self._responses(message, now)
        if isinstance(message, ClientContent):
            self.transcript.restored(message.turns, now=now)
            self._interrupt(now)
            self.model.history(message.turns, now=now, answer=message.turn_complete)
        # A context update changes what a model is told to be; the scripted one is told nothing.
        return []

    def heard(self, text: str, *, now: float) -> list[Effect]:
        """What comes of recognised speech; nothing where nothing was understood."""
        if not text.strip():
            return []
        self._say(text, now)
        if not self._setup.input_audio_transcription:
            return []
        return [ServerMessage(server_content=ServerContent(input_transcription=Transcription(text, finished=True)))]

    def wake(self, *, now: float) -> list[Effect]:
        """What the model says by now."""
        return [self._noted(message, now) for message in self.model.wake(now=now)]

    def _noted(self, message: ServerMessage, now: float) -> ServerMessage:
        content = message.server_content
        if content is None:
            return message
        self.transcript.model(content, now=now)
        if content.output_transcription is None or self._setup.output_audio_transcription:
            return message
        return replace(message, server_content=replace(content, output_transcription=None))

    def _realtime(self, message: RealtimeInput, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if message.activity_start:
            self._interrupt(now)
            self.hearing.start()
        for blob in _audio(message):
            if not acceptable(blob):
                return [*effects, closing.INVALID_ARGUMENT]
            effects += map(Utterance, self.hearing.feed(blob.data))
        if message.text is not None:
            effects.append(Remark(Audit.TYPED, {"text": message.text}))
            self._say(message.text, now)
        if message.activity_end:
            effects += map(Utterance, self.hearing.end())
        if message.audio_stream_end:
            effects += map(Utterance, self.hearing.stream_end())
        return effects

    def _responses(self, message: ToolResponse, now: float) -> list[Effect]:
        dropped = self._old_calls if self._profile.old_call is OldCall.IGNORE else frozenset()
        taken = tuple(response for response in message.function_responses if response.id not in dropped)
        old = [response.id for response in message.function_responses if response.id in dropped]
        effects: list[Effect] = [Remark(Audit.OLD_RESULT, {"ids": old})] if old else []
        unknown = self.model.respond(taken, now=now) if taken else ()
        if unknown:
            effects.append(Remark(Audit.UNKNOWN_RESULT, {"ids": list(unknown)}))
            if self._profile.unknown_result is UnknownResult.CLOSE:
                effects.append(closing.INVALID_ARGUMENT)
        return effects

    def _say(self, text: str, now: float) -> None:
        self._interrupt(now)
        self.transcript.user(text, now=now)
        self.model.prompt(text, now=now)

    def _interrupt(self, now: float) -> None:
        """The user talks: the model stops, unless the client asked it not to."""
        handling = self._setup.realtime_input_config.get("activityHandling")
        if self.model.speaking and handling != "NO_INTERRUPTION":
            self.model.interrupt(now=now)


def _audio(message: RealtimeInput) -> list[Blob]:
    """The pieces of audio; in the older form a client may mix them with pictures."""
    chunks = [blob for blob in message.media_chunks if blob.mime_type.startswith("audio/")]
    return [message.audio, *chunks] if message.audio is not None else chunks


def _flag(config: Mapping[str, Any], group: str, name: str) -> bool:
    found = config.get(group)
    return isinstance(found, Mapping) and found.get(name) is True
