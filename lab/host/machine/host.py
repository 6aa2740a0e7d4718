"""What a session host does with what comes from its remote, its session and its owner.

Every request is answered once, whatever happens to the session meanwhile, and each is one session's from its arrival
to its answer. The last thing that is said of a session is ``session_closed``.
"""

from collections.abc import Sequence

from lab.host.machine.commands import AskJob, AskSession, Audit, CloseTransport, Flush, HostCommand, Note, Send
from lab.host.machine.misuse import AlreadyRegistered, HostOver
from lab.host.machine.requests import JOB, Requests, refuse
from lab.host.machine.states import HOST, HostEvent, HostState, after
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.errors import HostProtocolError
from lab.host.protocol.messages import (
    Answer,
    CloseReason,
    ErrorTold,
    Event,
    EventBody,
    FinalizeSimulation,
    Message,
    Request,
    Response,
    SessionClosed,
)

DRAIN_S = 3.0
"""How long a closing host tries to write what is queued; livekit-agents 1.8.9. The job's answer has as long, which is
the lab's choice."""

NO_SESSION = "no active session"
SESSION_OVER = "the session closed before it answered"
CLOSING = "the host is closing"
UNKNOWN_ASK = "unknown request"
MOST_WAITING = 64
"""Requests that wait for their answers at once, each of which may be a whole message; one more is refused."""
TOO_MANY = f"{MOST_WAITING} requests wait for their answers, and no more may"

_LONG_ID = 100

_OPEN = frozenset({HostState.EMPTY, HostState.ATTACHED})


class HostMachine:
    """One host on one transport.

    Args:
        variant: Which repairs it has.
        drain_s: How long a close may take, and the writing of the job's answer.
    """

    def __init__(self, variant: Variant = REPAIRED, *, drain_s: float = DRAIN_S) -> None:
        self._variant = variant
        self._drain_s = drain_s
        self._state = HostState.EMPTY
        self._session: str | None = None
        self._kept = False
        """The attached session has closed, which only a defective host keeps."""
        self._requests = Requests(drain_s)
        self._late_at: float | None = None
        """While it drains: when that is given up."""

    @property
    def state(self) -> HostState:
        """Where it is in its life."""
        return self._state

    @property
    def session(self) -> str | None:
        """The attached session."""
        return self._session

    @property
    def unanswered(self) -> frozenset[str]:
        """Requests that wait for an answer."""
        return frozenset(self._requests.waiting)

    def register(self, session: str) -> list[HostCommand]:
        """Attach a session, from the next request on; one that is attached answers what it was asked before.

        Args:
            session: Its name, which no other one that is known here has.

        Raises:
            AlreadyRegistered: this one is attached.
            HostOver: the host takes none any more.
        """
        if self._state not in _OPEN:
            raise HostOver
        if session == self._session:
            raise AlreadyRegistered(session)
        self._session = session
        self._kept = False
        return self._to(HostEvent.REGISTERED, session)

    def unregister(self, session: str) -> list[HostCommand]:
        """Take a session away; nothing happens where another one has replaced it."""
        if session != self._session or self._state is not HostState.ATTACHED:
            return []
        self._session = None
        return self._to(HostEvent.DETACHED, session)

    def happened(self, session: str, body: EventBody) -> list[HostCommand]:
        """Something happened in a session; only the attached one is told of."""
        if session != self._session or self._kept or self._state is not HostState.ATTACHED:
            return [Note(Audit.LATE, {"session": session, "what": type(body).__name__})]
        return [Send(Event(body))]

    def session_closed(self, session: str, reason: CloseReason, error: str | None = None) -> list[HostCommand]:
        """A session closed: who waits for it is answered, then its end is told, and it is detached.

        Args:
            session: Its name, attached or not.
            reason: As it is told.
            error: What went wrong, if anything did.
        """
        if (session == self._session and self._kept) or self._state not in _OPEN:
            return [Note(Audit.LATE, {"session": session, "what": "close"})]
        commands: list[HostCommand] = []
        if self._variant.detaches_closed:
            commands += self._fail(self._requests.of(session), SESSION_OVER)
        if session != self._session:
            return commands
        if self._variant.tells_closed:
            commands.append(Send(Event(SessionClosed(reason, error))))
        self._kept = not self._variant.detaches_closed
        return commands + ([] if self._kept else self.unregister(session))

    def receive(self, message: Message) -> list[HostCommand]:
        """Something came from the remote."""
        if self._state is HostState.CLOSED:
            return []
        match message:
            case Request():
                return self._asked(message)
            case Response(request_id=name):
                told = f"Response {_short(name)} answers no request: a host asks nothing."
                return [Note(Audit.UNASKED, {"request": name}), *self._complain(told)]
            case _:
                return [Note(Audit.IGNORED, {"what": type(message).__name__})]

    def malformed(self, error: HostProtocolError, *, now: float) -> list[HostCommand]:
        """What came is no message: the remote is told; the next frame is read, where there can be one."""
        if self._state is HostState.CLOSED:
            return []
        commands = [Note(Audit.MALFORMED, {"error": str(error)}), *self._complain(str(error))]
        return commands + (self.close(now=now) if error.fatal else [])

    def answered(
        self, request_id: str, answer: Answer | None, error: str | None = None, *, now: float
    ) -> list[HostCommand]:
        """A session or the job is done with a request; one that was answered already stays so.

        Args:
            request_id: The remote's.
            answer: None with an error, or where there is nothing to say.
            error: What goes out in its place.
            now: The instant, seconds.
        """
        if request_id not in self.unanswered:
            return [Note(Audit.LATE, {"session": None, "what": f"answer {request_id}"})]
        return self._requests.answered(request_id, answer, error, now=now)

    def unsent(self, request_id: str) -> list[HostCommand]:
        """The transport, which stands, did not take an answer."""
        return self._requests.delivered(request_id, delivered=False)

    def close(self, *, now: float) -> list[HostCommand]:
        """Answer who waits, write what is queued, and close; closing twice is closing once."""
        if self._state not in _OPEN:
            return []
        commands = self._fail(self._requests.waiting, CLOSING)
        self._session = None
        self._late_at = now + self._drain_s
        return [*commands, *self._to(HostEvent.CLOSE, "its owner"), Flush()]

    def flushed(self, request_id: str | None) -> list[HostCommand]:
        """What was queued is written: up to the answer of a request, or all of it."""
        if request_id is not None:
            return self._requests.delivered(request_id, delivered=True)
        if self._state is not HostState.DRAINING:
            return []
        return self._end(HostEvent.FLUSHED, delivered=True, by=self._late_at)

    def lost(self, why: str) -> list[HostCommand]:
        """The transport is gone; nobody waits for answers any more."""
        if self._state is HostState.CLOSED:
            return []
        forgotten = self._requests.forget()
        self._session = None
        return [*forgotten, *self._end(HostEvent.LOST, why)]

    def next_at(self) -> float | None:
        """When to wake it, None for not before something happens."""
        instants = (self._requests.next_at(), self._late_at)
        return min((at for at in instants if at is not None), default=None)

    def wake(self, *, now: float) -> list[HostCommand]:
        """Do what is due."""
        if self._late_at is not None and self._late_at <= now:
            return self._end(HostEvent.LATE)
        return self._requests.wake(now=now)

    def _asked(self, request: Request) -> list[HostCommand]:
        name = request.request_id
        if name in self.unanswered:
            # An answer would be taken for the first one's.
            return [
                Note(Audit.MALFORMED, {"error": f"request {name} twice"}),
                *self._complain(f"Request {_short(name)} is being answered; a second one of that id is not."),
            ]
        if self._state is HostState.DRAINING:
            return [refuse(name, CLOSING)]
        if len(self._requests.waiting) >= MOST_WAITING and not self._is_first_finalize(request):
            return [refuse(name, TOO_MANY)]
        if isinstance(request.ask, FinalizeSimulation) and (self._variant.answers_finalize or self._session):
            self._requests.came(name, JOB)
            return [AskJob(name, request.ask)]
        if self._session is None:
            return self._without_session(request)
        if request.ask is None:
            return [refuse(name, UNKNOWN_ASK)]
        self._requests.came(name, self._session)
        return [AskSession(self._session, name, request.ask)]

    def _is_first_finalize(self, request: Request) -> bool:
        """Which no other request may keep away from the job."""
        return isinstance(request.ask, FinalizeSimulation) and not self._requests.of(JOB)

    def _without_session(self, request: Request) -> list[HostCommand]:
        final = isinstance(request.ask, FinalizeSimulation)
        if not final and self._variant.answers_without_session:
            return [refuse(request.request_id, NO_SESSION)]
        return [Note(Audit.DROPPED, {"request": request.request_id, "why": NO_SESSION})]

    def _fail(self, requests: Sequence[str], why: str) -> list[HostCommand]:
        return [command for request in requests for command in self._requests.fail(request, why)]

    def _complain(self, sentence: str) -> list[HostCommand]:
        return [Send(Event(ErrorTold(sentence)))]

    def _end(
        self, event: HostEvent, because: str = "", *, delivered: bool = False, by: float | None = None
    ) -> list[HostCommand]:
        self._late_at = None
        told = self._requests.all_delivered(delivered=delivered)
        return [*told, *self._to(event, because or event.value), CloseTransport(by)]

    def _to(self, event: HostEvent, because: str) -> list[HostCommand]:
        self._state = after(HOST, self._state, event)
        return [Note(Audit.STATE, {"state": self._state.value, "because": because})]


def _short(name: str) -> str:
    """Of a remote's id, which may fill a message."""
    return name if len(name) <= _LONG_ID else f"{name[:_LONG_ID]}..."
