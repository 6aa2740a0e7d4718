"""A job with its host, its sessions, and what the user wants done at a simulation's end."""

import asyncio
from collections.abc import Awaitable, Callable

from lab.host.machine.commands import (
    Audit,
    CloseHost,
    CloseSession,
    DeleteRoom,
    JobCommand,
    Judge,
    MakeHost,
    Note,
    Notes,
    Register,
    Reply,
    TellClosed,
    unwritten,
)
from lab.host.machine.host import DRAIN_S
from lab.host.machine.job import SESSION_END_TIMEOUT_S, JobMachine
from lab.host.machine.misuse import HostOver, SessionOver
from lab.host.machine.reasons import TOLD, EndCause, Ending
from lab.host.machine.states import JobState
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.messages import CloseReason, EventBody, Finalized, FinalizeSimulation, Verdict
from lab.host.shell.alarm import Alarm
from lab.host.shell.host import SessionHost
from lab.host.shell.own import Elsewhere, OwnHost
from lab.host.shell.owner import Owner
from lab.host.shell.session import Session
from lab.host.shell.tasks import Tasks, each, heard
from lab.host.shell.transport import Transport

_CAUSES = {reason: EndCause(cause) for cause, reason in TOLD.items()}

Judgement = Callable[[Verdict], Awaitable[Verdict | None]]
"""The user's ``on_simulation_end``: takes the simulator's own verdict."""


async def _no_verdict(_provisional: Verdict) -> None:
    return None


async def _nowhere(room: str) -> Transport:
    raise ConnectionError(f"This job has no way to room {room}.")


class Job:
    """One job in its room.

    Args:
        room: Its name.
        transport: Of the job's host.
        simulated: Whether a simulator drives it.
        on_simulation_end: The user's verdict.
        delete_room: Deletes a room.
        elsewhere: Makes the transport of a session's own host, for its room.
        session_end_timeout_s: How long a shutdown may take until the host drains.
        drain_s: How long a host's close may take, and what the user gave to be called, once it is cancelled.
        variant: Which repairs it has.
        note: Takes what is to be written down.
    """

    def __init__(
        self,
        room: str,
        transport: Transport,
        *,
        simulated: bool = False,
        on_simulation_end: Judgement = _no_verdict,
        delete_room: Callable[[str], None] = lambda _room: None,
        elsewhere: Elsewhere = _nowhere,
        session_end_timeout_s: float = SESSION_END_TIMEOUT_S,
        drain_s: float = DRAIN_S,
        variant: Variant = REPAIRED,
        note: Notes = unwritten,
    ) -> None:
        self._judgement = on_simulation_end
        self._delete_room = delete_room
        self._elsewhere = elsewhere
        self._variant = variant
        self._drain_s = drain_s
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._machine = JobMachine(
            room, simulated=simulated, session_end_timeout_s=session_end_timeout_s, variant=variant
        )
        self._alarm = Alarm(lambda: self._do(self._machine.wake(now=self._loop.time())))
        self._sessions: dict[str, Session] = {}
        self._hosts: dict[str, OwnHost] = {}
        self._tasks = Tasks()
        self._users = Tasks()
        """What the user gave to be called, which may not end when it is told to."""
        self._over_by = 0.0
        """When nobody waits for that any more, from the close of the job's host on."""
        self._done = asyncio.Event()
        self.verdict_taken = False
        """Whether the transport took a verdict: the kernel then has it, and nobody is told who reads it."""

        self.host = self._make_host(transport, owner=self)
        """Of the job's room."""

    @property
    def state(self) -> JobState:
        """Where it is in its life."""
        return self._machine.state

    def start_session(self, session: Session) -> None:
        """Attach a session to its host: the job's in the job's room, its own in any other.

        Raises:
            SessionOver: it has ended.
            NotStarted: it is started already, or the job is shutting down.
            AlreadyRegistered: its owner had registered it at the job's host; it is the job's from now on.
        """
        if session.ending is not None:
            raise SessionOver(session.name)
        commands = self._machine.started(session.name, session.room)
        self._sessions[session.name] = session
        try:
            self._do(commands)
        finally:
            # Behind its host, which has to tell its end before the job goes on.
            session.listen(self)

    async def host_of(self, session: Session) -> SessionHost:
        """The host that a session is told by.

        Raises:
            OSError: its own one has no transport.
        """
        own = self._hosts.get(session.name)
        return self.host if own is None else await own.made()

    def delete_room(self, room: str, reason: CloseReason = CloseReason.USER_INITIATED) -> None:
        """Delete a room; the simulated job's own one ends the job, and goes last."""
        self._do(self._machine.delete_room(room, reason, now=self._loop.time()))

    def simulator_left(self) -> None:
        """The simulator was seen to leave the room."""
        self._do(self._machine.simulator_left(now=self._loop.time()))

    def shutdown(self, reason: CloseReason = CloseReason.JOB_SHUTDOWN) -> None:
        """End the job; ``wait`` waits for that."""
        self._do(self._machine.shutdown(reason, now=self._loop.time()))

    async def wait(self) -> None:
        """Wait for its end; what the user gave to be called is cancelled then, and not waited for without bounds."""
        await self._done.wait()
        await self._tasks.join()
        self._users.cancel()
        await self._users.join(by=self._over_by)

    def finalize(self, request_id: str, ask: FinalizeSimulation) -> None:
        """See ``Owner``."""
        self._do(self._machine.finalize(request_id, ask))

    def lost(self, why: str) -> None:  # noqa: ARG002 -- the owner's port has it
        """See ``Owner``: over one transport with one simulator, its end is the simulator's leaving."""
        self.simulator_left()

    def happened(self, session: Session, body: EventBody) -> None:
        """See ``Listener``: the host tells it."""

    def closed(self, session: Session, ending: Ending) -> None:
        """See ``Listener``: its host hears it too, and tells it."""
        session.leave(self)
        self._sessions.pop(session.name, None)
        if session.name in self._hosts:
            self._hosts[session.name].closed(ending)
        self._do(self._machine.session_closed(session.name, now=self._loop.time()))

    def _do(self, commands: list[JobCommand]) -> None:
        """Carry all commands out, and raise then what one of them raised: the job ends, whosever code that is."""
        raised = each(self._carry_out, commands)
        self._alarm.set(self._machine.next_at())
        if self._machine.state is JobState.DONE:
            self._done.set()
        if raised is not None:
            raise raised

    def _carry_out(self, command: JobCommand) -> None:
        match command:
            case Register(name):
                self._register(name)
            case MakeHost(name):
                self._hosts[name] = OwnHost(
                    self._sessions[name], self._elsewhere, self._make_host, failed=self._failed, tasks=self._users
                )
            case CloseSession(name, reason):
                cause = _CAUSES.get(reason, EndCause.JOB_SHUTDOWN)
                self._users.start(self._close_session(self._sessions[name], cause))
            case TellClosed(name, reason, error):
                self._tell_closed(self._sessions.pop(name), Ending(_CAUSES[reason], error))
            case CloseHost(None):
                self._over_by = self._loop.time() + self._drain_s
                self._tasks.start(self._close_host())
            case CloseHost(str(name)):
                self._tasks.start(self._close_own(name, self._hosts[name]))
            case Judge(provisional):
                self._users.start(self._judge(provisional))
            case Reply():
                self._tasks.start(self._reply(command))
            case DeleteRoom(room):
                self._delete(room)
            case Note():
                self._note(command)

    def _failed(self, what: str, error: BaseException) -> None:
        self._note(Note(Audit.FAILED, {"what": what, "error": str(error) or type(error).__name__}))

    def _delete(self, room: str) -> None:
        try:
            self._delete_room(room)
        except Exception as raised:  # noqa: BLE001 -- a user's code may raise anything; the job ends all the same
            self._failed("delete_room", raised)

    async def _close_session(self, session: Session, cause: EndCause) -> None:
        _, raised = await heard(lambda: session.close(cause))
        if raised is not None:
            self._failed(f"close of {session.name}", raised)

    def _make_host(self, transport: Transport, owner: Owner | None = None) -> SessionHost:
        return SessionHost(transport, owner=owner, variant=self._variant, drain_s=self._drain_s, note=self._note)

    def _register(self, name: str) -> None:
        try:
            self.host.register_session(self._sessions[name])
        except HostOver:
            # The remote is gone, and the job goes on without one.
            return

    def _tell_closed(self, session: Session, ending: Ending) -> None:
        session.leave(self)
        own = self._hosts.get(session.name)
        if own is None:
            self.host.closed(session, ending)
        else:
            own.closed(ending)

    async def _close_own(self, name: str, own: OwnHost) -> None:
        await own.close(self._drain_s)
        if self._hosts.get(name) is own:
            del self._hosts[name]
        self._do(self._machine.host_closed(name))

    async def _close_host(self) -> None:
        await self.host.close()
        self._do(self._machine.host_closed())

    async def _judge(self, provisional: Verdict) -> None:
        verdict, raised = await heard(lambda: self._judgement(provisional))
        error = None if raised is None else f"on_simulation_end failed: {str(raised) or type(raised).__name__}"
        self._do(self._machine.judged(verdict, error))

    async def _reply(self, reply: Reply) -> None:
        answer = None if reply.error is not None else Finalized(reply.verdict)
        delivered = await self.host.answer(reply.request_id, answer, reply.error)
        self.verdict_taken |= delivered and reply.error is None
        self._do(self._machine.replied(delivered=delivered, now=self._loop.time()))
