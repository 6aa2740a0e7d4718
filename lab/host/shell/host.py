"""A session host on its transport."""

import asyncio
import contextlib

from lab.host.machine.commands import (
    AskJob,
    AskSession,
    Audit,
    CloseTransport,
    Delivered,
    Flush,
    Forget,
    HostCommand,
    Note,
    Notes,
    Send,
    unwritten,
)
from lab.host.machine.host import DRAIN_S, HostMachine
from lab.host.machine.misuse import SessionOver
from lab.host.machine.reasons import Ending
from lab.host.machine.states import HostState
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.errors import HostProtocolError
from lab.host.protocol.messages import Answer, EventBody, Message, Response
from lab.host.shell.alarm import Alarm
from lab.host.shell.asked import Asked
from lab.host.shell.outbox import Outbox
from lab.host.shell.owner import NoOwner, Owner
from lab.host.shell.session import Roster, Session
from lab.host.shell.tasks import Tasks, each
from lab.host.shell.transport import Transport, TransportClosed


class SessionHost:
    """Serves one remote, with the session that is registered or without.

    Args:
        transport: Its own.
        owner: The job; None for a session's own host.
        variant: Which repairs it has.
        drain_s: How long a close may take, and the writing of the job's answer.
        note: Takes what is to be written down.

    Raises:
        UsageError: the transport is somebody's already.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        owner: Owner | None = None,
        variant: Variant = REPAIRED,
        drain_s: float = DRAIN_S,
        note: Notes = unwritten,
    ) -> None:
        transport.claim("a host")
        self._transport = transport
        self._owner: Owner = owner if owner is not None else NoOwner(self._answered)
        self._note = note
        self._drain_s = drain_s
        self._machine = HostMachine(variant, drain_s=drain_s)
        self._sessions = Roster()
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self._do(self._machine.wake(now=self._loop.time())))
        self._tasks = Tasks()
        self._asked = Asked(self._answered)
        self._outbox = Outbox(transport, note)
        self._over_by: float | None = None
        """When nobody waits for it any more; None while it serves."""
        self._reading = self._tasks.start(self._read())

    @property
    def state(self) -> HostState:
        """Where it is in its life."""
        return self._machine.state

    @property
    def session(self) -> Session | None:
        """The attached session."""
        return self._sessions.get(self._machine.session)

    def register_session(self, session: Session) -> None:
        """Attach a session, from the next request on.

        Raises:
            SessionOver: it has ended.
            AlreadyRegistered: this one is attached.
            HostOver: the host is closing.
        """
        if session.ending is not None:
            raise SessionOver(session.name)
        self._attach(session)

    def register_ended(self, session: Session, ending: Ending) -> None:
        """Tell the end of a session that was over before this host was there.

        Raises:
            HostOver: the host is closing.
        """
        self._attach(session)
        self.closed(session, ending)

    def _attach(self, session: Session) -> None:
        name = self._sessions.name(session)
        new = name or self._sessions.free(session)
        commands = self._machine.register(new)
        if name is None:
            session.listen(self)
            self._sessions.add(new, session)
        self._do(commands)

    def unregister_session(self, session: Session) -> None:
        """Take a session away; what it was asked it still answers, until it closes."""
        if (name := self._sessions.name(session)) is not None:
            self._do(self._machine.unregister(name))

    def happened(self, session: Session, body: EventBody) -> None:
        """Something happened in a session."""
        if (name := self._sessions.name(session)) is not None:
            self._do(self._machine.happened(name, body))

    def closed(self, session: Session, ending: Ending) -> None:
        """A session is over."""
        session.leave(self)
        if (name := self._sessions.name(session)) is None:
            self._note(Note(Audit.LATE, {"session": session.name, "what": "close"}))
            return
        self._do(self._machine.session_closed(name, ending.reason, ending.error))
        if self._machine.session != name:
            self._sessions.drop(name)

    async def answer(self, request_id: str, answer: Answer | None, error: str | None = None) -> bool:
        """Send the job's answer; gives whether the transport took it, within the drain's time."""
        if request_id not in self._machine.unanswered:
            self._answered(request_id, answer, error)
            return False
        with self._outbox.delivering(request_id) as delivered:
            self._answered(request_id, answer, error)
            return await delivered

    async def close(self) -> None:
        """Write what is queued, for the drain's time at most, and end the transport."""
        self._do(self._machine.close(now=self._loop.time()))
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait for its end; for the code of sessions, which is stopped with it, no longer than a close may take."""
        await self._outbox.over.wait()
        await self._tasks.join()
        await self._asked.join(by=self._over_by)

    async def _read(self) -> None:
        readable = True
        while readable and self._machine.state is not HostState.CLOSED:
            try:
                readable = await self._read_one()
            except TransportClosed as gone:
                self._lost(str(gone))
            except Exception as defect:
                self._lost(_defect(defect))
                raise

    async def _read_one(self) -> bool:
        """Read a message, and do what it asks for; whether there can be another one."""
        await self._outbox.room()
        try:
            message = await self._transport.receive()
        except HostProtocolError as error:
            self._do(self._machine.malformed(error, now=self._loop.time()))
            if error.fatal:
                self._owner.lost(str(error))
            return not error.fatal
        self._do(self._machine.receive(message))
        # What can be answered at once is, before the next one is read, which may have come with it.
        await asyncio.sleep(0)
        return True

    def _lost(self, why: str) -> None:
        commands = self._machine.lost(why)
        if not commands:
            return
        try:
            self._do(commands)
        finally:
            self._owner.lost(why)

    def _do(self, commands: list[HostCommand]) -> None:
        """Carry all commands out; what one of them raises, whosever code that is, ends the host behind them."""
        if self._over_by is None and self._machine.state in {HostState.DRAINING, HostState.CLOSED}:
            self._over_by = self._loop.time() + self._drain_s
        raised = each(self._carry_out, commands)
        self._alarm.set(self._machine.next_at())
        if raised is not None:
            # What raises again on the way down is the same defect.
            with contextlib.suppress(Exception):
                self._lost(_defect(raised))
            raise raised

    def _carry_out(self, command: HostCommand) -> None:
        match command:
            case Send(message):
                self._send(message)
            case AskSession(name, request, ask):
                self._asked.ask(self._sessions[name], request, ask)
            case AskJob(request, ask):
                self._owner.finalize(request, ask)
            case Forget(request):
                self._asked.forget(request)
            case Flush(request):
                self._tasks.start(self._flush(request))
            case Delivered(request, delivered):
                self._outbox.delivered(request, delivered=delivered)
            case CloseTransport(by):
                self._end(by)
            case Note():
                self._note(command)

    def _send(self, message: Message) -> None:
        try:
            whole = self._outbox.send(message, self._reading)
        except TransportClosed as gone:
            self._lost(str(gone))
        else:
            if not whole and isinstance(message, Response):
                self._do(self._machine.unsent(message.request_id))

    def _answered(self, request: str, answer: Answer | None, error: str | None) -> None:
        self._do(self._machine.answered(request, answer, error, now=self._loop.time()))

    async def _flush(self, request: str | None) -> None:
        try:
            await self._transport.flush()
        except TransportClosed as gone:
            self._lost(str(gone))
        else:
            self._do(self._machine.flushed(request))

    def _end(self, by: float | None) -> None:
        self._alarm.stop()
        for session in self._sessions:
            session.leave(self)
        if self._reading is not asyncio.current_task():
            self._reading.cancel()
        if by is None:
            self._outbox.abort()
        else:
            self._tasks.start(self._outbox.close(by))


def _defect(error: Exception) -> str:
    return f"a defect: {str(error) or type(error).__name__}"
