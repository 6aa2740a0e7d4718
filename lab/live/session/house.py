"""All sessions of one server: what comes in from its connections, and what is to be done about it.

Events in, commands out: every method takes the instant in session seconds and gives commands in their order. The
caller sends them, tells how each connection ended, and calls ``wake`` at ``next_at``.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable

from lab.live.protocol import closing
from lab.live.protocol.closing import Closing, cut
from lab.live.protocol.errors import ProtocolError
from lab.live.protocol.messages import ClientMessage, Setup
from lab.live.session import limit
from lab.live.session.agenda import Agenda
from lab.live.session.commands import Audit, Close, Command, Note, Send
from lab.live.session.connections import Connection
from lab.live.session.conversation import Conversation
from lab.live.session.limit import Refusal
from lab.live.session.ports import Model, SpeechEnd
from lab.live.session.profile import LimitRefusal, Profile
from lab.live.session.session import Session
from lab.live.session.states import Detach
from lab.live.session.status import SHOWN, HouseStatus, SessionStatus, session_status

_SESSION, _LINK = 0, 1
"""Of two that are due at one instant a session goes before a connection without one."""

KEPT_OVER = 100
"""Sessions that are over and still shown."""


class House:
    """The sessions and connections of one server.

    Args:
        profile: How it behaves.
        token: Draws a handle; the study's had 36 characters.
        uniform: Draws a number between two, evenly.
        model: Makes the model of a session, for the setup that began it.
        speech: Makes what finds the end of an utterance in a session.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        token: Callable[[], str],
        uniform: Callable[[float, float], float],
        model: Callable[[Profile, Setup], Model],
        speech: Callable[[], SpeechEnd],
    ) -> None:
        self.profile = profile
        self._token = token
        self._uniform = uniform
        self._model = model
        self._speech = speech
        self._connections: dict[int, Connection] = {}
        self._sessions: dict[str, Session] = {}
        self._named: dict[str, str] = {}
        """Sessions by handle, ids both."""
        self._over: deque[SessionStatus] = deque(maxlen=KEPT_OVER)
        self._begun = 0
        self._refused: Counter[Refusal] = Counter()
        self._agenda = Agenda()

    def admits(self) -> bool:
        """Whether a connection is upgraded; False is HTTP's 429, for servers whose limit speaks there."""
        turned_away = self.profile.limit_refusal is LimitRefusal.HTTP_429 and limit.full(self.profile, self._counted())
        self._refused[Refusal.LIMIT] += turned_away
        return not turned_away

    def opened(self, connection: int, *, now: float) -> list[Command]:
        """A WebSocket is open.

        Raises:
            ValueError: one of that number is open already.
        """
        if connection in self._connections:
            raise ValueError(f"Connection {connection} is open already.")
        commands = self.wake(now=now)
        link = self._connections[connection] = Connection(connection, now)
        self._await(link)
        return [*commands, Note(Audit.OPENED, {"connection": connection})]

    def receive(self, connection: int, message: ClientMessage, *, now: float) -> list[Command]:
        """A client's message came; what comes after a close or a refused setup is not read.

        Raises:
            KeyError: there is no such connection.
        """
        link = self._connections[connection]
        commands = self.wake(now=now)
        if link.closed or link.refusal is not None:
            return commands
        if link.fresh != isinstance(message, Setup):
            # Something before the setup, or a second one.
            return commands + self._close(link, closing.INVALID_ARGUMENT, "out of order", now)
        if isinstance(message, Setup):
            return commands + self._admit(link, message, now)
        session = self._sessions[link.session or ""]
        return commands + self._minded(session, session.receive(message, now=now), now)

    def malformed(self, connection: int, error: ProtocolError, *, now: float) -> list[Command]:
        """A frame came that is no message.

        Raises:
            KeyError: there is no such connection.
        """
        link = self._connections[connection]
        how = Closing(error.close_code, cut(error.reason), "the reader of messages")
        commands = self.wake(now=now)
        if link.refusal is not None:
            return commands
        return commands + self._close(link, how, "malformed", now)

    def heard(self, session_id: str, text: str, *, now: float) -> list[Command]:
        """A recogniser is done with an utterance; a session that is over does not listen."""
        commands = self.wake(now=now)
        session = self._sessions.get(session_id)
        return commands + self._minded(session, session.heard(text, now=now), now) if session is not None else commands

    def detach(self, connection: int, how: Detach, *, now: float, detail: str = "") -> list[Command]:
        """A connection is gone.

        Args:
            connection: Its number, which may be used again.
            how: How it ended.
            now: Session seconds.
            detail: For the audit log.

        Raises:
            KeyError: there is no such connection.
        """
        link = self._connections[connection]
        # What was due before is done before, but nobody is there any more to be told.
        commands = [command for command in self.wake(now=now) if not _is_to(connection, command)]
        del self._connections[connection]
        self._agenda.put((_LINK, connection), None)
        fields = {"connection": connection, "how": how.value, "detail": detail, "session": link.session}
        fields["refusal"] = link.refusal.value if link.refusal is not None else None
        session = self._sessions.get(link.session) if link.session is not None else None
        if session is not None:
            commands += session.leave(how, now=now)
            fields["state"] = session.state.value
            self._mind(session, now)
        return [*commands, Note(Audit.DETACH, fields)]

    def close(self, session_id: str, how: Closing, *, now: float) -> list[Command]:
        """Close the connection of a session, as the service does at times; it can be resumed once that is answered.

        Raises:
            KeyError: there is no such session.
        """
        commands = self.wake(now=now)
        session = self._sessions[session_id]
        return commands + self._minded(session, session.close(how, "asked for", now=now), now)

    def dismiss(self, session_id: str, *, now: float) -> list[Command]:
        """End a session for good, whatever its state.

        Raises:
            KeyError: there is no such session.
        """
        commands = self.wake(now=now)
        session = self._sessions[session_id]
        return commands + self._minded(session, session.dismiss(now=now), now)

    def next_at(self) -> float | None:
        """When to wake next, session seconds; None for not before something comes in."""
        return self._agenda.next_at()

    def wake(self, *, now: float, most: int | None = None) -> list[Command]:
        """Do what is due by now.

        Args:
            now: Session seconds.
            most: Serve so many sessions and connections at most; ``next_at`` is then in the past. None: all of them.
        """
        commands: list[Command] = []
        for _ in itertools.count() if most is None else range(most):
            if (key := self._agenda.take(now=now)) is None:
                break
            kind, who = key
            if kind == _LINK:
                commands += self._due(self._connections[who], now)
            else:
                session = self._sessions[who]
                commands += self._minded(session, session.wake(now=now), now)
        return commands

    def status(self, *, now: float) -> HouseStatus:
        """What a status page shows."""
        living = [session_status(session, now=now) for session in self._sessions.values()]
        return HouseStatus(
            profile=self.profile.name,
            now=now,
            connections=len(self._connections),
            counted=self._counted(),
            limit=self.profile.concurrent_limit,
            refused={cause.value: self._refused[cause] for cause in Refusal},
            sessions=(*self._over, *living),
        )

    def _admit(self, link: Connection, setup: Setup, now: float) -> list[Command]:
        """Decide at the setup's arrival; what was decided is told later, as the real service does."""
        handle = (setup.session_resumption.handle if setup.session_resumption is not None else None) or None
        session = self._sessions.get(self._named.get(handle, "")) if handle is not None else None
        state = session.state if session is not None else None
        refusal = limit.decide(self.profile, resumes=handle is not None, state=state, counted=self._counted())
        if refusal is not None:
            if session is not None:
                session.awaited += 1
            return self._refuse(link, refusal, handle, now)
        takes = self.profile.setup_s if session is None else self.profile.resume_setup_s
        found = session or self._begin(setup, now)
        commands = found.attach(link, setup, ready_at=now + self._uniform(*takes), now=now)
        self._await(link)
        return self._minded(found, commands, now)

    def _refuse(self, link: Connection, refusal: Refusal, handle: str | None, now: float) -> list[Command]:
        self._refused[refusal] += 1
        after_s = self._uniform(*self.profile.refusal_s)
        link.refusal, link.refused_at = refusal, now + after_s
        self._await(link)
        how = limit.sentence(refusal, self.profile)
        fields = {"connection": link.number, "code": how.code, "reason": how.reason, "cause": refusal.value}
        shown = {"handle": handle[:SHOWN] if handle is not None else None, "after_s": after_s}
        return [Note(Audit.REFUSED, fields | shown)]

    def _begin(self, setup: Setup, now: float) -> Session:
        self._begun += 1
        name = f"session-{self._begun}"

        def handle() -> str:
            drawn = self._token()
            self._named[drawn] = name
            return drawn

        conversation = Conversation(self.profile, self._model(self.profile, setup), self._speech())
        self._sessions[name] = Session(name, self.profile, conversation, token=handle, now=now)
        return self._sessions[name]

    def _close(self, link: Connection, how: Closing, because: str, now: float) -> list[Command]:
        if link.session is not None:
            session = self._sessions[link.session]
            return self._minded(session, session.close(how, because, now=now), now)
        if link.closed:
            return []
        link.closed = True
        self._await(link)
        fields = {"connection": link.number, "code": how.code, "reason": how.reason, "because": because}
        return [Note(Audit.CLOSED, fields), Close(link.number, how.code, how.reason)]

    def _due_at(self, link: Connection) -> float | None:
        """When a connection without a session is to be closed: it is refused, or it never says what it wants."""
        if link.closed or link.session is not None:
            return None
        return link.refused_at if link.refused_at is not None else link.since + self.profile.silence_close_s

    def _due(self, link: Connection, now: float) -> list[Command]:
        if link.refusal is not None:
            return self._close(link, limit.sentence(link.refusal, self.profile), f"refused: {link.refusal.value}", now)
        return self._close(link, closing.INTERNAL_ERROR, "silence", now)

    def _await(self, link: Connection) -> None:
        """Plan when to look at a connection next; whatever changes one calls this."""
        self._agenda.put((_LINK, link.number), self._due_at(link))

    def _mind(self, session: Session, now: float) -> None:
        """Plan when to wake a session next, or forget it; whatever changes one calls this."""
        if session.over:
            self._forget(session, now)
        self._agenda.put((_SESSION, session.name), None if session.over else session.next_at())

    def _minded(self, session: Session, commands: list[Command], now: float) -> list[Command]:
        self._mind(session, now)
        return commands

    def _counted(self) -> int:
        return sum(session.locked for session in self._sessions.values())

    def _forget(self, session: Session, now: float) -> None:
        """Forget a session that is over, and its handles: an unknown handle gets what a dead one gets."""
        if self._sessions.pop(session.name, None) is not None:
            self._over.append(session_status(session, now=now))
            for handle in session.handles:
                self._named.pop(handle, None)


def _is_to(connection: int, command: Command) -> bool:
    return isinstance(command, Send | Close) and command.connection == connection
