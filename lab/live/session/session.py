"""One session: its state, its names, its clocks, and the connection that it has now, if any.

Nothing here knows of sockets. A session learns of a connection when a setup was accepted (``attach``), loses it when
the server says how it ended (``leave``), and keeps what was said either way.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lab.live.protocol import closing
from lab.live.protocol.closing import Closing
from lab.live.protocol.messages import (
    GoAway,
    ServerMessage,
    SessionResumptionUpdate,
    Setup,
    SetupComplete,
)
from lab.live.session.commands import Audit, Close, Command, Note, Recognise, Send
from lab.live.session.connections import Connection
from lab.live.session.conversation import Conversation, Effect, Input, Remark, Utterance
from lab.live.session.profile import Handles, Profile
from lab.live.session.states import LOCKED, OVER, Detach, Event, State, after, departure

MOST_ROUNDS = 100_000
"""Timers that one ``wake`` serves; a model that asks to be woken at once for ever is a defect."""

Timer = tuple[float, Callable[[float], list[Command]]]
"""When, and what then."""


class Session:
    """One conversation and its lock.

    Args:
        name: The session's id.
        profile: How the server behaves.
        conversation: What is said in it.
        token: Draws a handle.
        now: Session seconds.
    """

    def __init__(
        self, name: str, profile: Profile, conversation: Conversation, *, token: Callable[[], str], now: float
    ) -> None:
        self.name = name
        self.conversation = conversation
        self.state = State.FREE
        self.since = now
        """When it came into its state."""
        self.connection: Connection | None = None
        """The one that it has; after DEAD or ENDED the one that is still to go."""
        self.handles: list[str] = []
        """Oldest first; every one of them names it."""
        self.attached = 0
        """Connections that it has had."""
        self.awaited = 0
        """Resumes refused because of the present connection."""
        self.last_message_at = now
        self._profile = profile
        self._token = token
        self._wants_handles = False
        self._ready_at: float | None = None
        self._outbox: list[ServerMessage] = []
        self._go_away_at: float | None = None
        self._time_up_at: float | None = None

    @property
    def locked(self) -> bool:
        """Whether a resume is refused and the session counts against the limit."""
        return self.state in LOCKED

    @property
    def over(self) -> bool:
        """Whether nothing brings it back and no connection is left."""
        return self.state in OVER and self.connection is None

    @property
    def closes_at(self) -> float | None:
        """When its silence will have lasted too long."""
        waits = self.state in {State.ATTACHED, State.HELD}
        return self.last_message_at + self._profile.silence_close_s if waits else None

    def attach(self, connection: Connection, setup: Setup, *, ready_at: float, now: float) -> list[Command]:
        """Belong to a connection from here on; its setupComplete follows at ``ready_at``."""
        self._become(Event.ATTACH, now)
        connection.session = self.name
        self.connection, self.last_message_at, self.awaited = connection, now, 0
        self.attached += 1
        self._ready_at = ready_at
        self._wants_handles = setup.session_resumption is not None
        self.conversation.attach(setup)
        return [self._note(Audit.ATTACH, resumed=self.attached > 1, ready_at=ready_at)]

    def receive(self, message: Input, *, now: float) -> list[Command]:
        """Take a message of its connection."""
        self.last_message_at = now
        return self._carried(self.conversation.take(message, now=now), now)

    def heard(self, text: str, *, now: float) -> list[Command]:
        """Take what was made of an utterance, whether or not there is a connection still."""
        if self.state in OVER:
            return []
        note = self._note(Audit.HEARD, text=text)
        return [note, *self._carried(self.conversation.heard(text, now=now), now)]

    def close(self, how: Closing, because: str, *, now: float) -> list[Command]:
        """Send a close frame; the session is free once that is answered.

        The model waits from here on: a call that it made now would go nowhere, and none is made twice.
        """
        if self.connection is None or self.connection.closed:
            return []
        self.connection.closed = True
        self.conversation.cut_off(now=now)
        note = self._note(Audit.CLOSED, code=how.code, reason=how.reason, because=because, at=now)
        return [note, Close(self.connection.number, how.code, how.reason)]

    def dismiss(self, *, now: float) -> list[Command]:
        """End it for good, with its connection if there is one."""
        if self.state is State.ENDED:
            return []
        self._become(Event.DISMISSED, now)
        return [self._note(Audit.STATE, because="dismissed"), *self.close(closing.CANCELLED, "dismissed", now=now)]

    def leave(self, how: Detach, *, now: float) -> list[Command]:
        """Lose the connection."""
        gone, self.connection = self.connection, None
        waiting, self._outbox = self._outbox, []
        self._ready_at = self._go_away_at = self._time_up_at = None
        if self.state in OVER:
            return []
        event = departure(
            how,
            closed_by_server=gone is not None and gone.closed,
            named=bool(self.handles),
            speaking=self.conversation.model.speaking,
            awaited=self.awaited > 0,
        )
        self._become(event, now)
        self.conversation.cut_off(now=now)
        return self._carried(waiting, now)

    def next_at(self) -> float | None:
        """When to wake next."""
        return min((at for at, _ in self._timers()), default=None)

    def wake(self, *, now: float) -> list[Command]:
        """Do what is due, the oldest first."""
        commands: list[Command] = []
        for _ in range(MOST_ROUNDS):
            at, act = min(self._timers(), key=lambda timer: timer[0], default=(now, None))
            if act is None or at > now:
                return commands
            commands += act(now)
        raise RuntimeError(f"Session {self.name} asks to be woken at {self.next_at()} again and again.")

    def _timers(self) -> list[Timer]:
        if self.state in OVER:
            return []
        timers: list[tuple[float | None, Callable[[float], list[Command]]]] = [
            (self.conversation.model.next_at(), self._speak),
            (self.closes_at, self._silent),
        ]
        if self.state is State.SETTLING:
            timers.append((self.since + self._profile.settle_s, self._settled))
        if self.state is State.FREE:
            timers.append((self.since + self._profile.handle_valid_s, self._expired))
        if self.connection is not None and not self.connection.closed:
            timers += [(self._ready_at, self._ready), (self._go_away_at, self._go_away), (self._time_up_at, self._stop)]
        return [(at, act) for at, act in timers if at is not None]

    def _ready(self, now: float) -> list[Command]:
        """Send setupComplete, then the handle, then what was said meanwhile."""
        self._ready_at = None
        if self._profile.go_away_after_s is not None:
            self._go_away_at = now + self._profile.go_away_after_s
        first = [ServerMessage(setup_complete=SetupComplete(self.name))]
        if self._wants_handles:
            first.append(self._named(resumable=True))
        waiting, self._outbox = self._outbox, []
        if self.attached > 1:
            self.conversation.model.resumed(now=now)
        return [self._note(Audit.READY), *self._carried([*first, *waiting], now)]

    def _speak(self, now: float) -> list[Command]:
        return self._carried(self.conversation.wake(now=now), now)

    def _silent(self, now: float) -> list[Command]:
        self._become(Event.SILENT, now)
        note = self._note(Audit.STATE, because="silence")
        return [note, *self.close(closing.INTERNAL_ERROR, "silence", now=now)]

    def _settled(self, now: float) -> list[Command]:
        self._become(Event.SETTLED, now)
        return [self._note(Audit.STATE, because="settled")]

    def _expired(self, now: float) -> list[Command]:
        self._become(Event.EXPIRED, now)
        return [self._note(Audit.STATE, because="handle too old")]

    def _go_away(self, now: float) -> list[Command]:
        left_s = self._profile.go_away_time_left_s
        self._go_away_at, self._time_up_at = None, now + left_s
        sent = self._carried([ServerMessage(go_away=GoAway(left_s))], now)
        return [self._note(Audit.GO_AWAY, time_left_s=left_s), *sent]

    def _stop(self, now: float) -> list[Command]:
        return self.close(closing.GO_AWAY_IGNORED, "go away", now=now)

    def _carried(self, effects: Iterable[Effect], now: float) -> list[Command]:
        """Effects as commands to the present connection; what cannot be sent is counted."""
        commands: list[Command] = []
        unsent = 0
        for effect in effects:
            if isinstance(effect, Closing):
                commands += self.close(effect, "invalid message", now=now)
            elif isinstance(effect, Utterance):
                commands.append(Recognise(self.name, effect.pcm))
            elif isinstance(effect, Remark):
                commands.append(self._note(effect.event, **effect.fields))
            elif self.connection is None or self.connection.closed:
                unsent += 1
            else:
                commands += self._sent(self.connection, effect, now)
        return [*commands, self._note(Audit.UNSENT, messages=unsent)] if unsent else commands

    def _sent(self, connection: Connection, message: ServerMessage, now: float) -> list[Command]:
        if self._ready_at is not None:
            # Nothing goes before setupComplete.
            self._outbox.append(message)
            return []
        self.last_message_at = now
        extra = self._another_name(message) if self._wants_handles else []
        return [Send(connection.number, message), *(Send(connection.number, update) for update in extra)]

    def _another_name(self, message: ServerMessage) -> list[ServerMessage]:
        """The update that some servers send after a turn, and when a call begins."""
        turned = message.server_content is not None and message.server_content.turn_complete
        if self._profile.handles is not Handles.MANY or not (turned or message.tool_call is not None):
            return []
        return [self._named(resumable=not self.conversation.model.pending and message.tool_call is None)]

    def _named(self, *, resumable: bool) -> ServerMessage:
        if not resumable:
            return ServerMessage(session_resumption_update=SessionResumptionUpdate(resumable=False))
        self.handles.append(self._token())
        return ServerMessage(session_resumption_update=SessionResumptionUpdate(self.handles[-1], resumable=True))

    def _become(self, event: Event, now: float) -> None:
        self.state, self.since = after(self.state, event), now

    def _note(self, event: Audit, **fields: Any) -> Note:
        number = self.connection.number if self.connection is not None else None
        return Note(event, {"session": self.name, "connection": number, "state": self.state.value, **fields})
