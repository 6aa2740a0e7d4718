"""A session host on its transport."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from lab.host.machine.commands import AskJob, AskSession, Audit, CloseTransport, Flush, Forget, HostCommand, Note, Send
from lab.host.machine.host import DRAIN_S, HostMachine
from lab.host.machine.reasons import Ending
from lab.host.machine.states import HostState
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.errors import FrameTooLong, HostProtocolError
from lab.host.protocol.messages import Answer, Ask, EventBody, FinalizeSimulation, Message, Response
from lab.host.shell.alarm import Alarm
from lab.host.shell.session import Session
from lab.host.shell.tasks import Tasks
from lab.host.shell.transport import Transport, TransportClosed, Undeliverable

NO_JOB = "this host belongs to a session: it has no simulation"


class Owner(Protocol):
    """Whose host it is: a job."""

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
        """The simulator wants its verdict; ``SessionHost.answer`` takes it."""

    def lost(self, why: str) -> None:
        """The transport is gone, and the host with it."""


class SessionHost:
    """Serves one remote, with the session that is registered or without.

    Args:
        transport: Its own.
        owner: The job; None for a session's own host.
        variant: Which repairs it has.
        drain_s: How long a close may take.
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
        note: Callable[[Note], None] = lambda _note: None,
    ) -> None:
        transport.claim("a host")
        self._transport = transport
        self._owner = owner
        self._note = note
        self._machine = HostMachine(variant, drain_s=drain_s)
        self._sessions: dict[str, Session] = {}
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self._do(self._machine.wake(now=self._loop.time())))
        self._tasks = Tasks()
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._over = asyncio.Event()
        self._reading = self._tasks.start(self._read())

    @property
    def state(self) -> HostState:
        """Where it is in its life."""
        return self._machine.state

    @property
    def session(self) -> Session | None:
        """The attached session."""
        return self._sessions.get(self._machine.session or "")

    def register_session(self, session: Session) -> None:
        """Attach a session, from the next request on.

        Raises:
            AlreadyRegistered: this one is attached.
            HostOver: the host is closing.
        """
        commands = self._machine.register(session.name)
        before = self._sessions.get(session.name)
        if before is not session:
            session.listen(self)
        if before is not None and before is not session:
            # Another one of the same name, taken away and not closed: what it says is not this one's.
            before.leave(self)
        self._sessions[session.name] = session
        self._do(commands)

    def unregister_session(self, session: Session) -> None:
        """Take a session away; what it was asked it still answers, until it closes."""
        self._do(self._machine.unregister(session.name))

    def happened(self, session: Session, body: EventBody) -> None:
        """Something happened in a session."""
        self._do(self._machine.happened(session.name, body))

    def closed(self, session: Session, ending: Ending) -> None:
        """A session is over."""
        session.leave(self)
        self._do(self._machine.session_closed(session.name, ending.reason, ending.error))
        if self._machine.session != session.name:
            self._sessions.pop(session.name, None)

    async def answer(self, request_id: str, answer: Answer | None, error: str | None = None) -> bool:
        """Send the job's answer; gives whether the transport took it."""
        if not self._do(self._machine.answered(request_id, answer, error)):
            return False
        try:
            await self._transport.flush()
        except TransportClosed as gone:
            self._lost(str(gone))
            return False
        return self._machine.state is not HostState.CLOSED

    async def close(self) -> None:
        """Write what is queued, for the drain's time at most, and end the transport."""
        self._do(self._machine.close(now=self._loop.time()))
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait for its end."""
        await self._over.wait()
        await self._tasks.join()

    async def _read(self) -> None:
        while self._machine.state is not HostState.CLOSED:
            try:
                commands = self._machine.receive(await self._transport.receive())
            except HostProtocolError as error:
                self._do(self._machine.malformed(error, now=self._loop.time()))
                if error.fatal:
                    self._tell_owner(str(error))
                    return
            except TransportClosed as gone:
                self._lost(str(gone))
            else:
                self._do(commands)

    def _lost(self, why: str) -> None:
        commands = self._machine.lost(why)
        if not commands:
            return
        self._do([*commands, CloseTransport(abort=True)])
        self._tell_owner(why)

    def _tell_owner(self, why: str) -> None:
        if self._owner is not None:
            self._owner.lost(why)

    def _do(self, commands: list[HostCommand]) -> bool:
        """Carry commands out; gives whether all messages were taken."""
        taken = True
        for command in commands:
            match command:
                case Send(message):
                    taken = self._send(message) and taken
                case AskSession(name, request, ask):
                    self._answering[request] = self._tasks.start(self._ask(self._sessions[name], request, ask))
                case AskJob(request, ask):
                    self._ask_owner(request, ask)
                case Forget(request):
                    self._forget(request)
                case Flush():
                    self._tasks.start(self._flush())
                case CloseTransport(abort):
                    self._end(abort=abort)
                case Note():
                    self._note(command)
        self._alarm.set(self._machine.next_at())
        return taken

    def _send(self, message: Message) -> bool:
        try:
            self._transport.put(message)
        except FrameTooLong as error:
            # The answer is too long, and who waits for it is told so.
            return isinstance(message, Response) and self._send(Response(message.request_id, error=str(error)))
        except TransportClosed as gone:
            self._lost(str(gone))
            return False
        except Undeliverable as error:
            self._note(Note(Audit.UNSENT, {"what": type(message).__name__, "error": str(error)}))
            return False
        return True

    async def _ask(self, session: Session, request: str, ask: Ask) -> None:
        try:
            answer, error = await session.answer(ask), None
        except Exception as raised:  # noqa: BLE001 -- an agent's code may raise anything; it is the remote's to know
            answer, error = None, str(raised) or type(raised).__name__
        self._answering.pop(request, None)
        self._do(self._machine.answered(request, answer, error))

    def _ask_owner(self, request: str, ask: FinalizeSimulation) -> None:
        if self._owner is None:
            self._do(self._machine.answered(request, None, NO_JOB))
        else:
            self._owner.finalize(request, ask)

    def _forget(self, request: str) -> None:
        task = self._answering.pop(request, None)
        if task is not None:
            task.cancel()

    async def _flush(self) -> None:
        try:
            await self._transport.flush()
        except TransportClosed as gone:
            self._lost(str(gone))
        else:
            self._do(self._machine.flushed())

    def _end(self, *, abort: bool) -> None:
        self._alarm.stop()
        for session in self._sessions.values():
            session.leave(self)
        for task in (self._reading, *self._answering.values()):
            if task is not asyncio.current_task():
                task.cancel()
        if abort:
            self._transport.abort()
            self._over.set()
        else:
            self._tasks.start(self._close_transport())

    async def _close_transport(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_S):
                await self._transport.close()
        except TimeoutError:
            self._transport.abort()
        finally:
            self._over.set()
