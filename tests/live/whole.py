"""A whole conversation without a socket: server, model, wire, watchdog, recovery, ledger and backend on one clock.

Everything but the wire, the backend and the user is the lab's own. The wire is what TCP is to its ends: in order, late,
and with a hole in it silent; what was sent into the hole arrives when the path is back, if both ends still have the
socket by then. The backend has no key of its own: it books whatever it is told to, twice if told twice.
"""

import itertools
import math
import random
from collections import deque
from dataclasses import dataclass, field

from lab.live.model.manner import Manner
from lab.live.model.scripted import ScriptedModel, declared
from lab.live.model.speech import EndOfSpeech
from lab.live.protocol.messages import (
    ClientMessage,
    RealtimeInput,
    ServerContent,
    ServerMessage,
    SessionResumption,
    Setup,
    ToolCall,
    ToolResponse,
)
from lab.live.recovery import (
    Abandon,
    Adopt,
    CloseOld,
    Dial,
    Job,
    Ledger,
    Policy,
    Recovery,
    Restore,
    State,
    Transcript,
    Watchdog,
    history,
    update_note,
)
from lab.live.recovery.commands import Command as Wish
from lab.live.session.commands import Audit, Close, Command, Note, Send
from lab.live.session.house import House
from lab.live.session.profile import Profile
from lab.live.session.states import Detach

LATENCY_S = 0.01
"""One way. Study: pongs within 10 to 25 ms."""

CLOSE_WAIT_S = 10.0
"""How long a server awaits the answer to its close: the WebSocket library's default."""

TOOLS = ({"functionDeclarations": [{"name": "book_slot"}]},)


@dataclass(frozen=True)
class Ping:
    """Carries its own instant, as its pong does."""

    sent_at: float


@dataclass(frozen=True)
class End:
    """A close frame; from the client also how else its end of the connection may end."""

    code: int = 1000
    how: Detach = Detach.CLOSE_FRAME


Item = ClientMessage | ServerMessage | Ping | End


@dataclass
class Wire:
    """One connection, numbered as the recovery numbers its attempts."""

    number: int
    handle: str | None
    up: deque[tuple[float, Item]] = field(default_factory=deque)
    down: deque[tuple[float, Item]] = field(default_factory=deque)
    dark: bool = False
    buried: bool = False
    """Dark for good: its client's address is gone."""

    here: bool = True
    """The client has its socket."""

    there: bool = True
    """The server has it."""

    asked_to_close: bool = False
    """The client's close is written."""

    ready: bool = False

    def next_at(self) -> float:
        return math.inf if self.dark else min((line[0][0] for line in (self.up, self.down) if line), default=math.inf)

    def heal(self, now: float) -> None:
        """The path is back: what waited is sent again."""
        if self.buried or not self.dark:
            return
        self.dark = False
        self.up = deque((max(at, now + LATENCY_S), item) for at, item in self.up)
        self.down = deque((max(at, now + LATENCY_S), item) for at, item in self.down)


class Whole:
    """Both ends and what lies between them.

    Args:
        profile: The server's.
        policy: The client's.
        commit_s: What the backend takes.
        seed: Of all that is drawn.
    """

    def __init__(self, profile: Profile, policy: Policy, *, commit_s: float, seed: int) -> None:
        self.now = 1000.0
        self._draw = random.Random(seed)
        self._ids = itertools.count(1)
        self.commit_s = commit_s
        self.house = House(
            profile, token=lambda: self._id("h"), uniform=self._draw.uniform, model=self._model, speech=EndOfSpeech
        )
        self.wires: dict[int, Wire] = {}
        self.outage = False
        """New connections are dark too."""

        self.names: dict[str, str] = {}
        """Sessions by the handles that were issued for them."""

        self.unsigned: set[str] = set()
        """Sessions that lost a connection without a sign from the client."""

        self._sessions: dict[int, str] = {}
        """Sessions by connection."""

        self._drops_at: dict[int, float] = {}
        """When the server no longer awaits the answer to its close."""

        self.recovery = Recovery(policy)
        self.ledger = Ledger(dedupe=policy.dedupe)
        self.transcript = Transcript()
        self.adopted: set[str] = set()
        """Of which kinds the adopted connections were, after the first."""
        self.said: list[str] = []
        """The model's complete turns, as the client heard them."""

        self.untold: set[str] = set()
        """Bookings that the latest new session's note left out as too long ago."""

        self._turn: str | None = None
        self._unconfirmed = False
        self._due: list[tuple[float, Job, bool]] = []
        self.fail_next = False
        self.rows: list[tuple[str, float]] = []
        """What the backend booked: key and instant."""

        self.called: set[str] = set()
        self.cancelled: set[str] = set()
        """Ids that the server sent in calls and in cancellations; below, those that arrived."""

        self.heard_calls: set[str] = set()
        self.heard_cancelled: set[str] = set()
        self.answered: set[str] = set()
        """Ids that were answered at least once."""

        self.ignored: set[str] = set()
        """Ids of results that the server dropped as nobody's."""

        self.dial(0, None)
        self.watchdog: Watchdog | None = Watchdog(now=self.now)
        self.advance(1.0)

    def _id(self, kind: str) -> str:
        return f"{kind}{next(self._ids)}"

    def _model(self, profile: Profile, setup: Setup) -> ScriptedModel:
        return ScriptedModel(Manner.of(profile), declared(setup.tools), self._draw.uniform, lambda: self._id("c"))

    # The user and the network.

    @property
    def live(self) -> Wire | None:
        """The connection in use."""
        return None if self.recovery.connection is None else self.wires[self.recovery.connection]

    def say(self, text: str) -> None:
        """The user types."""
        self.transcript.complete()
        self.transcript.user(text)
        self._send(RealtimeInput(text=text))

    def drop(self, how: Detach) -> None:
        """The client's own doing, as in the study's first round; on a dark path a reset is lost, the rest is late."""
        wire = self.live
        assert wire is not None
        if how is Detach.RST and wire.dark:
            wire.up.clear()
        else:
            self._leave(wire, End(1000, how))
        wire.here = False
        self.lose(gone=True)

    def abort(self, wire: Wire) -> None:
        """A kernel or a shell is done with an old socket: one reset goes out, and on a dark path it is lost."""
        wire.here = False
        wire.up.clear()
        if not wire.dark:
            wire.up.append((self.now + LATENCY_S, End(1006, Detach.RST)))
        if wire.number != self.recovery.connection:
            self.obey(self.recovery.old_closed(attempt=wire.number, echoed=False, now=self.now))

    def reset(self, wire: Wire) -> None:
        """Somebody between the two ends both; what was on its way is lost."""
        wire.up.clear()
        wire.down.clear()
        if wire.there:
            self._forget(wire, Detach.RST)
        if wire.here:
            wire.here = False
            if wire.number == self.recovery.connection:
                self.lose(gone=True)
            else:
                self.obey(self.recovery.old_closed(attempt=wire.number, echoed=False, now=self.now))

    def give_up(self, wire: Wire) -> None:
        """The server's TCP does."""
        wire.down.clear()
        self._forget(wire, Detach.TCP_TIMEOUT)

    def advance(self, seconds: float) -> None:
        """Time passes, and everybody does what is due."""
        until = self.now + seconds
        while (at := self._next_at()) <= until:
            assert at >= self.now - 1e-9, "a wake-up was missed"
            self.now = max(self.now, at)
            self._step()
        self.now = until

    def _next_at(self) -> float:
        instants = [wire.next_at() for wire in self.wires.values()]
        instants += [at for at in (self.house.next_at(), self.recovery.next_at()) if at is not None]
        instants += [at for at, _, _ in self._due] + list(self._drops_at.values())
        if self.watchdog is not None:
            instants.append(self.watchdog.next_at())
        return min(instants)

    def _step(self) -> None:
        for wire in list(self.wires.values()):
            self._carry(wire)
        self.take(self.house.wake(now=self.now))
        assert (at := self.house.next_at()) is None or at > self.now, "the server would turn in place"
        for number in [number for number, at in self._drops_at.items() if at <= self.now]:
            self._forget(self.wires[number], Detach.NOTHING)
        self._commit()
        self._watch()
        self.obey(self.recovery.wake(now=self.now))
        assert (at := self.recovery.next_at()) is None or at > self.now, "the recovery would turn in place"

    def _carry(self, wire: Wire) -> None:
        while not wire.dark and wire.up and wire.up[0][0] <= self.now:
            self._at_server(wire, wire.up.popleft()[1])
        while not wire.dark and wire.down and wire.down[0][0] <= self.now:
            self._at_client(wire, wire.down.popleft()[1])

    # The server's shell.

    def _at_server(self, wire: Wire, item: Item) -> None:
        if not wire.there:
            if wire.here and not isinstance(item, End):  # the kernel answers for a socket that is gone
                wire.down.append((self.now + LATENCY_S, End(1006, Detach.RST)))
        elif isinstance(item, End):
            if item.how is Detach.CLOSE_FRAME and wire.number not in self._drops_at:
                wire.down.append((self.now + LATENCY_S, End(item.code)))
            self._forget(wire, item.how)
        elif isinstance(item, Ping):
            wire.down.append((self.now + LATENCY_S, item))
        else:
            assert not isinstance(item, ServerMessage)
            self.take(self.house.receive(wire.number, item, now=self.now))

    def _forget(self, wire: Wire, how: Detach) -> None:
        self._drops_at.pop(wire.number, None)
        wire.there = False
        if how in {Detach.TCP_TIMEOUT, Detach.NOTHING} and wire.number in self._sessions:
            self.unsigned.add(self._sessions[wire.number])
        self.take(self.house.detach(wire.number, how, now=self.now))

    def take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Send):
                self._note(command.connection, command.message)
                self._down(command.connection, command.message)
            elif isinstance(command, Close):
                self._drops_at[command.connection] = self.now + CLOSE_WAIT_S
                self._down(command.connection, End(command.code))
            elif isinstance(command, Note) and command.event is Audit.UNKNOWN_RESULT:
                self.ignored |= set(command.fields["ids"])

    def _down(self, number: int, item: Item) -> None:
        assert self.wires[number].there, "something was sent to a connection that is gone"
        self.wires[number].down.append((self.now + LATENCY_S, item))

    def _note(self, number: int, message: ServerMessage) -> None:
        self.called |= _ids(message.tool_call)
        if message.tool_call_cancellation is not None:
            self.cancelled |= set(message.tool_call_cancellation.ids)
        if (setup := message.setup_complete) is not None:
            session, handle = str(setup.session_id), self.wires[number].handle
            assert handle is None or self.names[handle] == session, "a resume reached another session"
            others = [other for other, each in self._sessions.items() if each == session and self.wires[other].there]
            assert not others, "two connections have one session"
            self._sessions[number] = session
        if (update := message.session_resumption_update) is not None and update.new_handle is not None:
            self.names[update.new_handle] = self._sessions[number]

    # The client's shell.

    def dial(self, number: int, handle: str | None) -> None:
        wire = self.wires[number] = Wire(number, handle, dark=self.outage)
        self.take(self.house.opened(number, now=self.now))
        setup = Setup("m", tools=TOOLS, session_resumption=SessionResumption(handle), output_audio_transcription=True)
        wire.up.append((self.now + LATENCY_S, setup))

    def obey(self, wishes: list[Wish]) -> None:
        for wish in wishes:
            match wish:
                case Dial(attempt, handle):
                    self.dial(attempt, handle)
                case Abandon(attempt, code) | CloseOld(attempt, code):
                    self._leave(self.wires[attempt], End(code))
                case Adopt(attempt, resumed):
                    self.adopted.add("resumed" if resumed else "new")
                    self.ledger.adopted(resumed=resumed)
                    self.watchdog, self._unconfirmed = Watchdog(now=self.now), False
                    self._flush()
                case Restore(_, note):
                    jobs = self.ledger.effects(now=self.now)
                    self._send(history(self.transcript.turns, jobs, note=note))
                    self.ledger.noted(jobs)
                    self._unconfirmed = True
                    self.untold = {key for key, _ in self.rows} - {job.key for job in jobs}

    def lose(self, *, gone: bool) -> None:
        self.transcript.lost()
        self.ledger.lost()
        self.watchdog, self._turn = None, None
        self.obey(self.recovery.lost(now=self.now, gone=gone, restored=not self._unconfirmed))

    def _leave(self, wire: Wire, end: End) -> None:
        """Queue a close behind all that is written already; a socket that is gone has none to queue."""
        if wire.here and not wire.asked_to_close:
            wire.asked_to_close = True
            wire.up.append((self.now + LATENCY_S, end))

    def _send(self, message: ClientMessage | Ping) -> None:
        wire = self.live
        assert wire is not None
        assert wire.here
        wire.up.append((self.now + LATENCY_S, message))

    def _at_client(self, wire: Wire, item: Item) -> None:
        if not wire.here:
            if wire.there:  # likewise
                wire.up.append((self.now + LATENCY_S, End(1006, Detach.RST)))
        elif isinstance(item, End):
            self._ended(wire, item)
        elif wire.number != self.recovery.connection:
            self._on_another(wire, item)
        else:
            assert self.watchdog is not None
            if isinstance(item, Ping):
                self.watchdog.pong(item.sent_at, now=self.now)
                self.ledger.heard(item.sent_at)
            elif isinstance(item, ServerMessage):
                self.watchdog.frame(now=self.now)
                self._read(item)

    def _ended(self, wire: Wire, end: End) -> None:
        """The server's close came, or its answer to the client's, or a reset."""
        reset = end.how is Detach.RST
        if not (wire.asked_to_close or reset):
            wire.up.append((self.now + LATENCY_S, End(end.code)))
        wire.here = False
        if wire.number == self.recovery.connection:
            self.lose(gone=True)
        elif not wire.ready and reset:
            self.obey(self.recovery.failed(wire.number, "reset", now=self.now))
        elif not wire.ready:
            self.obey(self.recovery.refused(wire.number, end.code, now=self.now))
        else:
            self.obey(self.recovery.old_closed(attempt=wire.number, echoed=not reset, now=self.now))

    def _on_another(self, wire: Wire, item: Item) -> None:
        """Something came on a connection that is not in use: its setup's answer, or its path is back."""
        if wire.ready:
            self.obey(self.recovery.path_back(attempt=wire.number, now=self.now))
        elif isinstance(item, ServerMessage) and item.setup_complete is not None:
            wire.ready = True
            self.obey(self.recovery.ready(wire.number, now=self.now))

    def _read(self, message: ServerMessage) -> None:
        if message.setup_complete is not None and self.live is not None:
            self.live.ready = True  # the first connection's
        if (update := message.session_resumption_update) is not None:
            self.recovery.issued(update.new_handle, resumable=update.resumable)
        if message.tool_call_cancellation is not None:
            self.heard_cancelled |= set(message.tool_call_cancellation.ids)
            self.ledger.cancelled(message.tool_call_cancellation.ids)
        if message.tool_call is not None:
            self.heard_calls |= _ids(message.tool_call)
            self._call(message.tool_call)
        if message.server_content is not None:
            self._hear(message.server_content)
        if message.tool_call is not None or message.server_content is not None:
            self._unconfirmed = False
        self._flush()

    def _call(self, asked: ToolCall) -> None:
        for call in asked.function_calls:
            if (job := self.ledger.called(call, now=self.now)) is not None:
                self._due.append((self.now + self.commit_s, job, self.fail_next))
                self.fail_next = False

    def _hear(self, content: ServerContent) -> None:
        if content.output_transcription is not None:
            self._turn = (self._turn or "") + content.output_transcription.text
            self.transcript.model(content.output_transcription.text)
        if content.interrupted:
            self.transcript.complete()
            self._turn = None
        if content.turn_complete:
            self.transcript.complete()
            self.said += [self._turn] if self._turn is not None else []
            self._turn = None

    def _flush(self) -> None:
        """Send the results that are due, and word of jobs that a note left open."""
        if self.live is None:
            return
        for response in self.ledger.take(now=self.now):
            self.answered.add(str(response.id))
            self._send(ToolResponse((response,)))
        if self._turn is None and (jobs := self.ledger.updates()):
            self._send(update_note(jobs))
            self.ledger.told(jobs, now=self.now)

    def _watch(self) -> None:
        """Send the pings and judge the silence."""
        if self.watchdog is None:
            return
        if self.watchdog.ping_due(now=self.now):
            self._send(Ping(self.now))
            self.watchdog.pinged(now=self.now)
        if self.watchdog.lost(now=self.now) is not None:
            self.lose(gone=False)

    # The backend.

    def _commit(self) -> None:
        due = [line for line in self._due if line[0] <= self.now]
        self._due = [line for line in self._due if line[0] > self.now]
        for _, job, fails in due:
            if not fails:
                self.rows.append((job.key, self.now))
            booked = {"status": "booked", **job.args, "confirmation_id": f"BK-{1000 + len(self.rows)}"}
            response = {"status": "failed", "error": "no such slot"} if fails else booked
            self.ledger.finished(job.number, response, now=self.now, failed=fails)
        if due:
            self._flush()

    def close(self) -> None:
        """The user wants no more."""
        self.watchdog = None
        self.obey(self.recovery.close(now=self.now))

    @property
    def attached(self) -> bool:
        """Whether the user can talk."""
        return self.recovery.state is State.ATTACHED


def _ids(asked: ToolCall | None) -> set[str]:
    return set() if asked is None else {str(call.id) for call in asked.function_calls}
