"""A session server's wire as a script: what comes in and what goes out, line by line, each at its instant.

::

    0     open 1
    0     setup 1                  with resumption; ``setup 1 no`` without, ``setup 1 h1`` to resume
    0.25  > 1 setupComplete session-1
    0.25  > 1 handle h1
    1     type 1 book              ``content`` and ``note`` (no answer) as clientContent, ``heard session-1 TEXT``
    2     > 1 call c1
    3     gone 1 FIN
    3     wake                     look what is due

The clock stops wherever the house asks to be woken. Handles are h1, h2, ...; every range is drawn at its lower end.
"""

import itertools
from collections.abc import Iterable, Mapping

from lab.live.protocol.closing import CANCELLED
from lab.live.protocol.errors import ProtocolError
from lab.live.protocol.messages import (
    Blob,
    ClientContent,
    ClientMessage,
    Content,
    FunctionResponse,
    Part,
    RealtimeInput,
    ServerMessage,
    SessionResumption,
    Setup,
    ToolResponse,
)
from lab.live.session.commands import Audit, Close, Command, Note, Recognise, Send
from lab.live.session.house import House
from lab.live.session.profile import DEFAULT, Profile
from lab.live.session.states import Detach
from tests.live.session.fakes import FakeEar, FakeModel

PCM = "audio/pcm;rate=16000"


ROUND = {"setup_s": (0.25, 0.32), "resume_setup_s": (0.5, 0.6), "refusal_s": (0.47, 0.7)}
"""What the scripts are written with in place of the default's own durations: they are about order, not about these."""


def _rounded(profile: Profile) -> Profile:
    return profile.with_(
        **{name: span for name, span in ROUND.items() if getattr(profile, name) == getattr(DEFAULT, name)}
    )


class Stage:
    """A house with fakes around it, its clock, and all that came out of it."""

    def __init__(self, profile: Profile = DEFAULT) -> None:
        self.models: list[FakeModel] = []
        self.out: list[str] = []
        self.notes: list[Note] = []
        self.now = 0.0
        handles = (f"h{n}" for n in itertools.count(1))
        self.house = House(
            _rounded(profile),
            token=lambda: next(handles),
            uniform=min,
            model=lambda _profile, _setup: self._model(),
            speech=FakeEar,
        )

    def _model(self) -> FakeModel:
        self.models.append(FakeModel())
        return self.models[-1]

    def until(self, instant: float) -> None:
        """Let time pass; the house is woken when it asks to be."""
        while (at := self.house.next_at()) is not None and at <= instant:
            assert at >= self.now, "a wake-up was missed"
            self.now = at
            self.take(self.house.wake(now=at))
        self.now = instant

    def take(self, commands: Iterable[Command]) -> None:
        """Write down what is to go out."""
        for command in commands:
            if isinstance(command, Note):
                self.notes.append(command)
            else:
                self.out.append(f"{self.now:g} {words(command)}")

    def do(self, line: str) -> None:
        """Let something come in."""
        verb, *words_ = line.split()
        if verb != "wake":
            self.take(self._come(verb, words_))

    def _come(self, verb: str, given: list[str]) -> list[Command]:
        house, now = self.house, self.now
        first, rest = given[0], given[1:]
        if verb == "heard":
            return house.heard(first, " ".join(rest), now=now)
        if verb == "close":
            return house.close(first, CANCELLED, now=now)
        if verb == "dismiss":
            return house.dismiss(first, now=now)
        number = int(first)
        if verb == "open":
            return house.opened(number, now=now)
        if verb == "gone":
            return house.detach(number, Detach(" ".join(rest)), now=now)
        if verb == "malformed":
            return house.malformed(number, ProtocolError("setup", "No such field."), now=now)
        return house.receive(number, message(verb, rest), now=now)

    def told(self, event: Audit) -> list[Mapping[str, object]]:
        """The fields of all notes of one kind."""
        return [note.fields for note in self.notes if note.event is event]


def play(script: str, profile: Profile = DEFAULT) -> Stage:
    """Run a script and compare all that went out, and when, with what it expects."""
    stage = Stage(profile)
    expected = []
    for line in filter(None, (line.strip() for line in script.splitlines())):
        instant, what = line.split(maxsplit=1)
        stage.until(float(instant))
        if what.startswith((">", "recognise")):
            expected.append(f"{float(instant):g} {what}")
        else:
            stage.do(what)
    assert stage.out == expected
    return stage


def message(verb: str, given: list[str]) -> ClientMessage:
    """A client's message of a line of a script."""
    text = " ".join(given)
    if verb == "setup":
        resumption = None if given == ["no"] else SessionResumption(given[0] if given else None)
        return Setup("models/m", session_resumption=resumption, output_audio_transcription=True)
    if verb == "result":
        return ToolResponse(tuple(FunctionResponse(name, "book_slot") for name in given))
    if verb in {"content", "note"}:
        return ClientContent((Content("user", (Part(text),)),), turn_complete=verb == "content")
    if verb == "audio":
        return RealtimeInput(audio=Blob(bytes.fromhex(given[0]), given[1] if given[1:] else PCM))
    return RealtimeInput(text=text)


def words(command: Command) -> str:
    """A command as a line of a script."""
    if isinstance(command, Send):
        return f"> {command.connection} {' '.join(_parts(command.message))}"
    if isinstance(command, Close):
        return f"> {command.connection} close {command.code}"
    if isinstance(command, Recognise):
        return f"recognise {command.session_id} {command.pcm.hex()}"
    return f"note {command.event}"


def _parts(found: ServerMessage) -> Iterable[str]:
    if found.setup_complete is not None:
        yield f"setupComplete {found.setup_complete.session_id}"
    if (update := found.session_resumption_update) is not None:
        yield f"handle {update.new_handle}" if update.resumable else "not resumable"
    if found.go_away is not None:
        yield f"goAway {found.go_away.time_left_s:g}"
    if found.tool_call is not None:
        yield f"call {','.join(call.id or '' for call in found.tool_call.function_calls)}"
    if found.tool_call_cancellation is not None:
        yield f"cancels {','.join(found.tool_call_cancellation.ids)}"
    if (content := found.server_content) is not None:
        if content.input_transcription is not None:
            yield f"heard {content.input_transcription.text}"
        if content.output_transcription is not None:
            yield f"says {content.output_transcription.text.strip()}"
        yield from (name for name in ("interrupted", "turn_complete") if getattr(content, name))
