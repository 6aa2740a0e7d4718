"""Event streams of sessions that never were, as the programs would have told them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.study.judgement import Session
from lab.study.outcome import read
from lab.study.proofs import defect, doubts, stuck
from lab.study.reading import Observed, OnTheWire
from lab.study.scenario import Loss


@dataclass
class Stream:
    """Collects events; ``at`` counts from the session's start."""

    loss: Loss
    wire: OnTheWire | None = None
    kernel_factor: float = 1.0
    assistant: list[dict[str, Any]] = field(default_factory=list)
    server: list[dict[str, Any]] = field(default_factory=list)
    attempts: int = 0

    def say(self, at: float, event: str, **fields: Any) -> "Stream":
        self.assistant.append({"at": 1000.0 + at, "event": event, **fields})
        return self

    def answered(self, at: float, text: str, **fields: Any) -> "Stream":
        self.serve(at - 2.0, "typed", session="session-1", text="Did you book it?")
        return self.say(at, "answer", asked="Did you book it?", text=text, **fields)

    def serve(self, at: float, event: str, **fields: Any) -> "Stream":
        self.server.append({"at": 1000.0 + at, "event": event, **fields})
        return self

    def begin(self) -> "Stream":
        return self.attempt(0.0, None, 0.3).serve(0.0, "attach", connection=1)

    def attempt(self, at: float, handle: str | None, took_s: float, refused: int | None = None) -> "Stream":
        self.attempts += 1
        self.say(at, "connecting", attempt=self.attempts, handle=handle)
        if refused is None:
            return self.say(at + took_s, "setup_complete", attempt=self.attempts, took_s=took_s)
        return self.say(at + took_s, "refused", attempt=self.attempts, took_s=took_s, code=refused, phase="setup")

    def call(self, at: float, name: str = "c1") -> "Stream":
        return self.say(at, "tool_call", id=name, name="book_slot", args={"slot": "tomorrow 3pm"}, attempt=1)

    def without(self, event: str, nth: int = 0) -> "Stream":
        """The same but for the n-th event of this name."""
        del self.assistant[[k for k, each in enumerate(self.assistant) if each["event"] == event][nth]]
        return self

    def end(self, at: float, count: int = 1, *, ok: bool = True) -> "Stream":
        return self.say(at, "bookings", count=count, rows=[]).say(at, "done", ok=ok)

    @property
    def observed(self) -> Observed:
        return Observed(self.loss, self.assistant, self.server, self.wire, self.kernel_factor)

    def session(self, scenario: str, number: int = 0, *, real: bool = False, **changes: Any) -> Session:
        seen = self.observed
        return Session(
            scenario, number, real, read(seen), invalid=doubts(seen), stuck=stuck(seen), defect=defect(seen), **changes
        )


def r1(number: int = 1, *, count: int = 1, consistent: bool = True) -> Stream:
    """R1: an abort 1.0 s after the call; the first session makes no second attempt."""
    made = Stream(Loss.ABORT).begin().call(4.05).say(5.05, "drop", how="abort", attempt=1)
    made.serve(5.051, "detach", connection=1, how="RST").attempt(5.05, "h1", 0.58, refused=1011)
    if number % 4 == 0:
        return made.end(6.0, count)
    made.attempt(6.65, "h1", 0.55).say(8.05, "committed", key="tomorrow 15:00", confirmation_id="BK-1001")
    made.say(8.06, "result_sent", id="c1", attempt=3).say(8.70, "audio_first", attempt=3)
    made.say(11.0, "turn_complete", attempt=3)
    made.answered(13.0, "It is booked.", consistent=consistent, commit_age_s=3.5)
    return made.end(13.1, count)


def br1(*, count: int = 1, reissued: bool = False, audio_s: float = 1.0, early: bool = False) -> Stream:
    """BR1: packet loss, four refusals, a new session, and an answer; ``early``: the second attempt is accepted."""
    made = Stream(Loss.PACKET_LOSS, OnTheWire(1005.05, None, 0, None)).begin().call(4.05)
    made.say(5.05, "mark", name="cut").say(6.85, "lost", attempt=1, silent_s=2.0, by="silence")
    for k in range(4):
        if early and k == 1:
            made.attempt(6.85 + k, "h1", 0.55)
        else:
            made.attempt(6.85 + k, "h1", 0.57, refused=1011)
    made.say(8.05, "committed", key="tomorrow 15:00", confirmation_id="BK-1001")
    made.attempt(10.43, None, 0.28).say(10.72, "restored", attempt=6, note=True, jobs=1)
    made.say(10.72 + audio_s, "audio_first", attempt=6)
    if reissued:
        made.say(11.4, "tool_call", id="c2", name="book_slot", args={"slot": "tomorrow at 3pm"}, attempt=6)
    made.answered(15.0, "It is booked.", consistent=True, commit_age_s=6.0)
    return made.end(15.1, count)


def b1(*, told: bool = False, silent_s: float = 479.2, refusals: int = 90) -> Stream:
    """B1, thirtyfold: dark at 5.05 s of the wall, lapsed from the detection on."""
    lapse_at, cut_at = 6.85, 5.05

    def wall(session_s: float) -> float:
        """Wall seconds, from the cut, of so many session seconds from the cut."""
        return session_s if session_s <= lapse_at - cut_at else lapse_at - cut_at + (session_s - 1.8) / 30

    first = wall(silent_s)
    made = Stream(Loss.PACKET_LOSS, OnTheWire(1000 + cut_at, first, 11, first + 117.1 / 30), 30.0).begin().call(4.05)
    made.say(cut_at, "mark", name="cut").say(lapse_at, "lost", attempt=1, silent_s=2.0, by="silence")
    made.say(lapse_at, "lapse", since=1000.0 + lapse_at, factor=30)
    for k in range(refusals):
        begun = lapse_at + 10 * k / 30
        made.attempts += 1
        made.say(begun, "connecting", attempt=made.attempts, handle="h1")
        made.say(begun + 0.02, "refused", attempt=made.attempts, took_s=0.6, code=1011, phase="setup")
    if told:
        made.serve(10.0, "detach", connection=1, how="RST")
    return made.end(40.0)


def pick(session: Session) -> Mapping[str, Any]:
    """Values by short names, rounded as they are judged."""
    return {quantity.name: tuple(round(value, 3) for value in values) for quantity, values in session.values.items()}
