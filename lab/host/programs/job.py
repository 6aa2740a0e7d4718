"""A job with a scripted agent as a program: it listens for one simulator, and ends with it.

================ ==========================================================================================
event            with
================ ==========================================================================================
listening        ``port``
refused          ``why``: one too many, or one with another carrier
connected
happened         ``session``, ``what``: an event of the session
session_closed   ``session``, ``cause``, ``error``
judging          ``provisional``: the simulator's own verdict, which the job's has to come of
judged           ``verdict``: the job's
status           ``job``, ``host``: their states; ``session``: the attached one, or null
state, note      of the host and the job: see ``lab.host.machine.commands.Audit``
not_understood   ``line``, ``known``: a line that is none of the known ones
not_done         ``line``, ``why``: a line that asks for what cannot be
room_deleted     ``room``
done             ``verdict_taken``: whether the kernel took the verdict; that the simulator heard it nobody knows here
================ ==========================================================================================
"""

import argparse
import asyncio
import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lab.host.machine.misuse import Misuse
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.variant import VARIANTS
from lab.host.programs.common import Program, note, one_that_comes, run, say, words
from lab.host.programs.options import SCRIPT
from lab.host.programs.typed import typed
from lab.host.protocol.messages import CloseReason, EventBody, Verdict
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.job import Job
from lab.host.shell.session import Session
from lab.host.shell.transport import Transport

ROOM = "room-1"


class Teller:
    """Says what happens to a session, and shuts its job down when it is over.

    Args:
        job: Whose.
        stays: Whether the job goes on all the same.
    """

    def __init__(self, job: Job, *, stays: bool = False) -> None:
        self._job = job
        self._stays = stays

    def happened(self, session: Session, body: EventBody) -> None:
        """See ``Listener``."""
        say("happened", session=session.name, what=type(body).__name__)

    def closed(self, session: Session, ending: Ending) -> None:
        """See ``Listener``."""
        say("session_closed", session=session.name, cause=ending.cause, error=ending.error)
        if not self._stays:
            self._job.delete_room(session.room, ending.reason)
            self._job.shutdown(ending.reason)


class JobProgram(Program):
    """One job, its sessions, and who leads them."""

    def __init__(self, given: argparse.Namespace, transport: Transport) -> None:
        super().__init__(given, transport)
        self._numbers = itertools.count(1)
        self._agent: ScriptedAgent | None = None
        self.job = Job(
            ROOM,
            transport,
            simulated=True,
            on_simulation_end=self._judge,
            delete_room=lambda room: say("room_deleted", room=room),
            session_end_timeout_s=given.session_end_timeout,
            variant=VARIANTS[given.variant],
            note=note,
        )
        self._does: Mapping[str, Callable[[], None]] = MappingProxyType(
            {"start": self.start, "end": self.end, "shutdown": self.job.shutdown, "status": self._status}
        )

    async def run(self) -> int:
        """See ``Program``: it is over when the job is done."""
        self.start()
        if self._given.end_after is not None:
            asyncio.get_running_loop().call_later(self._given.end_after, self.end)
        self._beside.start(self._end_with_host())
        if self._given.by_hand:
            self._beside.start(self._lead())
        await self.job.wait()
        self._beside.cancel()
        await self._beside.join()
        say("done", verdict_taken=self.job.verdict_taken)
        return 0 if self.job.verdict_taken else 1

    def start(self) -> None:
        """Begin a session.

        Raises:
            NotStarted: the job is shutting down.
        """
        agent = ScriptedAgent(f"session-{next(self._numbers)}", ROOM, SCRIPT, hangs_up_after=self._given.hangs_up_after)
        self.job.start_session(agent)
        self._agent = agent
        agent.listen(Teller(self.job, stays=self._given.stay))

    def end(self) -> None:
        """End the session that began last."""
        if self._agent is not None:
            self._agent.end(EndCause.USER_INITIATED)

    async def _end_with_host(self) -> None:
        """A host has one simulator: nobody comes after it."""
        await self.job.host.wait_closed()
        self.job.shutdown(CloseReason.PARTICIPANT_DISCONNECTED)

    async def _lead(self) -> None:
        """Do what is typed."""
        async for line in typed():
            do = self._does.get(line)
            if do is None:
                say("not_understood", line=line, known=list(self._does))
                continue
            try:
                do()
            except Misuse as mistake:
                say("not_done", line=line, why=str(mistake))
        self.job.shutdown()

    def _status(self) -> None:
        attached = self.job.host.session
        name = None if attached is None else attached.name
        say("status", job=self.job.state.value, host=self.job.host.state.value, session=name)

    async def _judge(self, provisional: Verdict) -> Verdict:
        say("judging", provisional=words(provisional))
        await asyncio.sleep(self._given.judging)
        verdict = Verdict(provisional.success, f"the agent's author agrees: {provisional.reason}")
        say("judged", verdict=words(verdict))
        return verdict


async def run_job(given: argparse.Namespace) -> int:
    """Serve one simulator; the exit code."""
    return await run(JobProgram, given, one_that_comes(given))
