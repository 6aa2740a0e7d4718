"""What a job does: it owns the host of its room, and outlives its sessions.

Its primary session attaches to the job's host; a session that is started in another room gets a host of its own, since
the job's transport is bound to the job's room. Under a simulation the job serves until the simulator has its verdict,
leaves, or is waited for no longer; the room is deleted once, after that.
"""

from lab.host.machine.commands import (
    Audit,
    CloseHost,
    CloseSession,
    DeleteRoom,
    JobCommand,
    Judge,
    MakeHost,
    Note,
    Register,
    Reply,
    TellClosed,
)
from lab.host.machine.misuse import NotStarted
from lab.host.machine.states import JOB, JobEvent, JobState, after
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol.messages import CloseReason, FinalizeSimulation, Verdict

SESSION_END_TIMEOUT_S = 60.0
"""How long a shutdown under a simulation waits, where nobody says otherwise; the lab's choice."""

SHUT_DOWN = "the job has shut down"
NO_SIMULATION = "the job runs no simulation"
NO_VERDICT = "no verdict came before the job's end"
NOT_CLOSED = "the session did not close in time"


class JobMachine:
    """One job.

    Args:
        room: Its room.
        simulated: Whether a simulator drives it.
        session_end_timeout_s: How long its shutdown may take until the host drains.
        variant: Which repairs it has.
    """

    def __init__(
        self,
        room: str,
        *,
        simulated: bool = False,
        session_end_timeout_s: float = SESSION_END_TIMEOUT_S,
        variant: Variant = REPAIRED,
    ) -> None:
        self.room = room
        self._simulated = simulated
        self._timeout_s = session_end_timeout_s
        self._variant = variant
        self._state = JobState.RUNNING
        self._rooms: dict[str, str] = {}
        """The room of each session that is not closed."""
        self._judging: list[str] | None = None
        """Requests that wait for the verdict, None before the first."""
        self._said: tuple[Verdict | None, str | None] | None = None
        """What each of them is answered: the verdict, the error."""
        self._served = False
        """The simulator has its verdict, or is gone."""
        self._late_at: float | None = None
        self._draining: list[str | None] = []
        """Hosts that are closing: of sessions by name, None for the job's; a name may come twice."""
        self._last: list[str] = []
        """Rooms to delete when all else is done."""
        self._deleted: set[str] = set()

    @property
    def state(self) -> JobState:
        """Where it is in its life."""
        return self._state

    def started(self, session: str, room: str) -> list[JobCommand]:
        """A session began.

        Raises:
            NotStarted: it began already, or the job is ending.
        """
        if self._state is not JobState.RUNNING or session in self._rooms:
            raise NotStarted(session, running=session in self._rooms)
        self._rooms[session] = room
        return [Register(session)] if room == self.room else [MakeHost(session, room)]

    def session_closed(self, session: str, *, now: float) -> list[JobCommand]:
        """A session closed, of itself or because the job wanted it; its host has told that already."""
        room = self._rooms.pop(session, None)
        if room is None:
            return []
        return self._close_own(session, room) + self._go_on(now)

    def finalize(self, request_id: str, asked: FinalizeSimulation) -> list[JobCommand]:
        """The simulator asks for its verdict; the user is asked once, however often that is."""
        if self._state in {JobState.CLOSING, JobState.DONE}:
            return [Reply(request_id, error=SHUT_DOWN)]
        if not self._simulated:
            return [Reply(request_id, error=NO_SIMULATION)]
        if self._said is not None:
            return [Reply(request_id, *self._said)]
        if self._judging is not None:
            self._judging.append(request_id)
            return []
        self._judging = [request_id]
        return [Judge(Verdict(asked.provisional_success, asked.provisional_reason))]

    def judged(self, verdict: Verdict | None, error: str | None = None) -> list[JobCommand]:
        """The user's verdict is there, or what went wrong with it."""
        return [] if self._judging is None or self._said is not None else self._reply(verdict, error)

    def replied(self, *, delivered: bool, now: float) -> list[JobCommand]:
        """An answer of the verdict went out, or could not.

        Args:
            delivered: Whether the transport took it.
            now: The instant, seconds.
        """
        if self._said is None or not (delivered or self._variant.counts_undeliverable):
            return []
        self._served = True
        return self._go_on(now, JobEvent.FINALIZED)

    def simulator_left(self, *, now: float) -> list[JobCommand]:
        """The simulator is gone, and was seen to go."""
        self._served = True
        return self._go_on(now, JobEvent.LEFT)

    def delete_room(self, room: str, reason: CloseReason, *, now: float) -> list[JobCommand]:
        """Somebody wants a room deleted: at once, but the simulated job's own one last, after a shutdown."""
        if not (self._simulated and room == self.room and self._variant.defers_deletion):
            return self._delete(room)
        if room not in self._last:
            self._last.append(room)
        if self._state is JobState.DONE:
            return self._delete(room)
        return self.shutdown(reason, now=now)

    def shutdown(self, reason: CloseReason, *, now: float) -> list[JobCommand]:
        """End the sessions, then serve who is still to be served, then close the host; twice is once."""
        if self._state is not JobState.RUNNING:
            return []
        self._late_at = now + self._timeout_s
        commands = self._to(JobEvent.SHUTDOWN)
        commands += [CloseSession(session, reason) for session in self._rooms]
        return commands + self._go_on(now)

    def host_closed(self, session: str | None = None) -> list[JobCommand]:
        """A host is closed; with the last one the job is done, since each has to say its session's end.

        Args:
            session: Whose it was, None for the job's.
        """
        if session not in self._draining:
            return []
        self._draining.remove(session)
        if self._draining or self._state is not JobState.CLOSING:
            return []
        commands = self._to(JobEvent.HOSTS_CLOSED)
        return commands + [command for room in self._last for command in self._delete(room)]

    def next_at(self) -> float | None:
        """When to wake it, None for not before something happens."""
        return self._late_at if self._state in {JobState.ENDING, JobState.SERVING} else None

    def wake(self, *, now: float) -> list[JobCommand]:
        """Do what is due."""
        due = self.next_at()
        return self._close(JobEvent.LATE) if due is not None and due <= now else []

    def _go_on(self, now: float, why: JobEvent = JobEvent.FINALIZED) -> list[JobCommand]:
        """Take the next step of a shutdown, where its condition holds."""
        if self._state is JobState.SERVING and self._served:
            return self._close(why)
        if self._state is not JobState.ENDING or self._rooms:
            return []
        if self._simulated and not self._served and self._variant.serves_simulator:
            return self._to(JobEvent.SIMULATOR_DUE) + self.wake(now=now)
        return self._close(JobEvent.SESSIONS_CLOSED)

    def _close(self, why: JobEvent) -> list[JobCommand]:
        commands = self._to(why)
        if self._judging is not None and self._said is None:
            commands += self._reply(None, NO_VERDICT)
        for session, room in self._rooms.items():
            commands.append(TellClosed(session, CloseReason.JOB_SHUTDOWN, NOT_CLOSED))
            commands += self._close_own(session, room)
        self._rooms.clear()
        self._draining.append(None)
        return [*commands, CloseHost()]

    def _close_own(self, session: str, room: str) -> list[JobCommand]:
        if room == self.room:
            return []
        self._draining.append(session)
        return [CloseHost(session)]

    def _reply(self, verdict: Verdict | None, error: str | None) -> list[JobCommand]:
        self._said = (verdict, error)
        waiting, self._judging = self._judging or [], []
        return [Reply(request, verdict, error) for request in waiting]

    def _delete(self, room: str) -> list[JobCommand]:
        if room in self._deleted:
            return []
        self._deleted.add(room)
        return [DeleteRoom(room)]

    def _to(self, event: JobEvent) -> list[JobCommand]:
        self._state = after(JOB, self._state, event)
        return [Note(Audit.STATE, {"state": self._state.value, "because": event.value})]
