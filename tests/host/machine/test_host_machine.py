"""Whatever happens to a host, its session and its transport: no request stays unanswered, none is answered twice."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lab.host.machine.commands import AskJob, AskSession, CloseTransport, Delivered, Flush, HostCommand, Note, Send
from lab.host.machine.host import DRAIN_S, HostMachine
from lab.host.machine.states import HostState
from lab.host.protocol.errors import FrameTooLong, NoMessage
from lab.host.protocol.messages import (
    AgentStateChanged,
    CloseReason,
    Event,
    FinalizeSimulation,
    Ping,
    Pong,
    Request,
    Response,
    SessionClosed,
)

SESSIONS = st.sampled_from(["s1", "s2", "s3"])


class Hosting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.host = HostMachine()
        self.now = 0.0
        self.number = 0
        self.attached: str | None = None
        self.living: set[str] = set()
        """Registered, and not closed since."""
        self.asked: dict[str, str | None] = {}
        """Whose each request is, None for the job's and for nobody's."""
        self.answers: dict[str, int] = {}
        self.delivering: set[str] = set()
        """The job's answers that nobody was told of."""
        self.gone = False

    def do(self, commands: list[HostCommand]) -> None:
        for command in commands:
            assert isinstance(command, Note) or not self.gone, "nothing is done behind the transport's end"
            match command:
                case Send(Response(request_id=name)):
                    self.answers[name] += 1
                case Send(Event(AgentStateChanged() | SessionClosed())):
                    assert self.attached in self.living
                case AskSession(session, name):
                    assert session == self.attached
                    self.asked[name] = session
                case AskJob(name):
                    self.asked[name] = None
                case Flush(str(name)):
                    assert self.asked[name] is None
                    self.delivering.add(name)
                case Delivered(name):
                    self.delivering.remove(name)
                case CloseTransport():
                    self.gone = True

    @property
    def open(self) -> bool:
        return self.host.state in {HostState.EMPTY, HostState.ATTACHED}

    @precondition(lambda self: self.open)
    @rule(session=SESSIONS)
    def register(self, session: str) -> None:
        if session == self.attached:
            return
        self.do(self.host.register(session))
        self.attached = session
        self.living.add(session)

    @rule(session=SESSIONS)
    def unregister(self, session: str) -> None:
        self.do(self.host.unregister(session))
        self.attached = None if session == self.attached else self.attached

    @rule(session=SESSIONS, reason=st.sampled_from(CloseReason))
    def close_session(self, session: str, reason: CloseReason) -> None:
        commands = self.host.session_closed(session, reason)
        told = [command for command in commands if isinstance(command, Send) and isinstance(command.message, Event)]
        assert len(told) == (self.open and session == self.attached)
        assert not told or told == [command for command in commands if isinstance(command, Send)][-1:]
        self.do(commands)
        self.living.discard(session)
        self.attached = None if session == self.attached else self.attached
        assert not [name for name, whose in self.asked.items() if whose == session and name in self.host.unanswered]

    @rule(session=SESSIONS)
    def happen(self, session: str) -> None:
        self.do(self.host.happened(session, AgentStateChanged()))

    @precondition(lambda self: self.host.state is not HostState.CLOSED)
    @rule(final=st.booleans())
    def ask(self, final: bool) -> None:
        self.number += 1
        name = str(self.number)
        self.answers[name] = 0
        self.do(self.host.receive(Request(name, FinalizeSimulation() if final else Ping())))
        assert (self.answers[name] == 1) is not (name in self.host.unanswered)

    @rule(back=st.integers(0, 3), fails=st.booleans())
    def answer(self, back: int, fails: bool) -> None:
        name = str(self.number - back)
        self.do(self.host.answered(name, None if fails else Pong(), "no" if fails else None, now=self.now))

    @rule(fatal=st.booleans())
    def malformed(self, fatal: bool) -> None:
        self.do(self.host.malformed(FrameTooLong(2, 1) if fatal else NoMessage("none"), now=self.now))
        self._notice()

    @rule()
    def close(self) -> None:
        self.do(self.host.close(now=self.now))
        self._notice()

    @rule()
    def lose(self) -> None:
        self.do(self.host.lost("reset"))
        self.gone = True
        self._notice()

    @rule(flushes=st.booleans())
    def drain(self, flushes: bool) -> None:
        self.now += DRAIN_S
        self.do(self.host.flushed(None) if flushes else self.host.wake(now=self.now))

    @rule(back=st.integers(0, 3), takes=st.booleans())
    def deliver(self, back: int, takes: bool) -> None:
        name = str(self.number - back)
        self.do(self.host.flushed(name) if takes else self.host.unsent(name))

    def _notice(self) -> None:
        self.attached = self.host.session

    @invariant()
    def once(self) -> None:
        for name, times in self.answers.items():
            waits = name in self.host.unanswered
            assert times + waits <= 1
            assert times + waits == 1 or self.host.state is HostState.CLOSED, f"request {name} was forgotten"

    @invariant()
    def bounded(self) -> None:
        due = self.host.next_at()
        assert not self.delivering or due is not None
        assert due is None or due <= self.now + DRAIN_S

    def teardown(self) -> None:
        self.do(self.host.close(now=self.now))
        if not self.gone:
            self.do(self.host.wake(now=self.now + DRAIN_S))
        assert self.delivering == set()
        assert self.host.state is HostState.CLOSED
        assert self.gone
        assert self.host.unanswered == frozenset()


TestHosting = Hosting.TestCase
