"""A job with a scripted agent, a simulator of its user, or a relay, as a program; what it sees it says as JSON lines.

A job listens for one simulator, and ends with it; the simulator connects, plays its turns, and asks for the verdict.
A relay joins a host and a remote that both connect.
"""

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from functools import partial

from lab.core.errors import LabError, UsageError
from lab.host.machine.commands import Audit, Note
from lab.host.machine.job import SESSION_END_TIMEOUT_S
from lab.host.machine.reasons import EndCause, Ending
from lab.host.machine.remote import TIMEOUT_S, Watch
from lab.host.machine.variant import REPAIRED, VARIANTS
from lab.host.protocol.messages import CloseReason, EventBody, SessionClosed, Verdict
from lab.host.shell import transport, websocket
from lab.host.shell.agent import ScriptedAgent
from lab.host.shell.job import Job
from lab.host.shell.relay import serve
from lab.host.shell.remote import RemoteSession, RequestFailed
from lab.host.shell.session import Session
from lab.host.shell.simulator import simulate
from lab.host.shell.transport import Transport
from lab.host.typed import typed
from lab.programs.report import say

ROOM = "room-1"
SCRIPT = {"book it": "It is booked.", "goodbye": "Goodbye."}
TURNS = ("book it", "goodbye")
VERDICT = Verdict(True, "the agent's author is content")


def parser() -> argparse.ArgumentParser:
    """The options of all three."""
    made = argparse.ArgumentParser(prog="python -m lab.host", description=__doc__)
    made.add_argument("--websocket", action="store_true", help="instead of framed TCP")
    roles = made.add_subparsers(dest="role", required=True)
    job = roles.add_parser("job", help="listen for a simulator")
    job.add_argument("--host", default="127.0.0.1", help="address to listen on")
    job.add_argument("--port", type=int, default=8770, help="0 takes a free one")
    job.add_argument("--variant", choices=sorted(VARIANTS), default=REPAIRED.name, help="which defect it has")
    job.add_argument("--hangs-up-after", metavar="TEXT", help="the turn after which the agent ends the call")
    job.add_argument("--session-end-timeout", type=float, metavar="S", default=SESSION_END_TIMEOUT_S)
    job.add_argument("--judging", type=float, metavar="S", default=0.0, help="how long the user's verdict takes")
    job.add_argument("--by-hand", action="store_true", help="obey lines: end (the session), shutdown (the job), status")
    simulator = roles.add_parser("simulator", help="connect to a job, and play its user")
    simulator.add_argument("host")
    simulator.add_argument("port", type=int)
    simulator.add_argument("--turn", action="append", metavar="TEXT", help="what the user says; several in order")
    simulator.add_argument("--timeout", type=float, metavar="S", default=TIMEOUT_S, help="of a request")
    simulator.add_argument("--watch", type=float, nargs=2, metavar=("ASK_S", "LOST_S"), help="the watchdog; else none")
    simulator.add_argument("--await-close", action="store_true", help="before the verdict, wait for the session's end")
    simulator.add_argument("--listen", action="store_true", help="wait for a host that connects by itself")
    simulator.add_argument("--by-hand", action="store_true", help="each line is a turn as well, but for status")
    relay = roles.add_parser("relay", help="join a host and a remote that both connect, over whatever carrier")
    relay.add_argument("--address", dest="host", metavar="ADDRESS", default="127.0.0.1", help="to listen on")
    relay.add_argument("--host-port", type=int, default=8770, metavar="PORT", help="for the host; 0 takes a free one")
    relay.add_argument("--remote-port", type=int, default=8771, metavar="PORT", help="for the remote")
    relay.add_argument(
        "program", nargs="*", metavar="PROGRAM", help="after --: started beside it, on its standard input and output"
    )
    return made


class Teller:
    """Says what happens to a session, and shuts its job down when it is over."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def happened(self, session: Session, body: EventBody) -> None:
        """See ``Listener``."""
        say("happened", session=session.name, what=type(body).__name__)

    def closed(self, session: Session, ending: Ending) -> None:
        """See ``Listener``."""
        say("session_closed", session=session.name, cause=ending.cause, error=ending.error)
        self._job.delete_room(session.room, ending.reason)
        self._job.shutdown(ending.reason)


def note(written: Note) -> None:
    """Say what a machine wants written down."""
    if written.event is Audit.STATE:
        say("state", **written.fields)
    else:
        say("note", kind=written.event.value, **written.fields)


async def run_job(given: argparse.Namespace) -> None:
    """Serve one simulator."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[Transport] = loop.create_future()
    listening = (websocket if given.websocket else transport).listening
    async with listening(given.host, given.port, partial(_first, arrived)) as port:
        say("listening", port=port)
        made = await arrived
        say("connected")
        job = Job(
            ROOM,
            made,
            simulated=True,
            on_simulation_end=partial(_judge, given.judging),
            delete_room=_delete,
            session_end_timeout_s=given.session_end_timeout,
            variant=VARIANTS[given.variant],
            note=note,
        )
        agent = ScriptedAgent("session-1", ROOM, SCRIPT, hangs_up_after=given.hangs_up_after)
        job.start_session(agent)
        agent.listen(Teller(job))
        led = asyncio.ensure_future(_lead(job, agent)) if given.by_hand else None
        await job.wait()
        if led is not None:
            led.cancel()
        say("done")


async def _lead(job: Job, agent: ScriptedAgent) -> None:
    """Do what is typed."""
    async for line in typed():
        if line == "status":
            attached = job.host.session
            name = None if attached is None else attached.name
            say("status", job=job.state.value, host=job.host.state.value, session=name)
        elif line == "end":
            agent.end(EndCause.USER_INITIATED)
        elif line == "shutdown":
            job.shutdown()
        else:
            say("not_understood", line=line)


def _first(arrived: "asyncio.Future[Transport]", made: Transport) -> None:
    """Take the first connection; a job has one simulator, and a simulator one job."""
    if arrived.done():
        say("refused", why="there is one already")
        made.abort()
    else:
        arrived.set_result(made)


def _delete(room: str) -> None:
    say("room_deleted", room=room)


async def _judge(takes_s: float, provisional: Verdict) -> Verdict:
    say("judging", success=provisional.success, reason=provisional.reason)
    await asyncio.sleep(takes_s)
    return VERDICT


async def run_simulator(given: argparse.Namespace) -> None:
    """Play one call."""
    if given.listen:
        arrived: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
        listening = (websocket if given.websocket else transport).listening
        async with listening(given.host, given.port, partial(_first, arrived)) as port:
            say("listening", port=port)
            await _play(given, await arrived)
    elif given.websocket:
        await _play(given, await websocket.connect(f"ws://{given.host}:{given.port}"))
    else:
        await _play(given, await transport.connect(given.host, given.port))


async def _play(given: argparse.Namespace, made: Transport) -> None:
    remote = RemoteSession(made, timeout_s=given.timeout, watch=Watch(*given.watch) if given.watch else None, note=note)
    say("connected")
    telling = asyncio.ensure_future(_tell(remote))
    ended = asyncio.ensure_future(_tell_end(remote))
    judge = partial(_own_verdict, given.turn or TURNS)
    asking = asyncio.ensure_future(_ask(remote)) if given.by_hand else None
    found = await simulate(remote, given.turn or TURNS, judge, await_close=given.await_close)
    verdict = None if found.verdict is None else {"success": found.verdict.success, "reason": found.verdict.reason}
    say("finalized", verdict=verdict, outcome=found.outcome.value, error=found.error, asked_s=found.asked_s)
    if asking is not None:
        asking.cancel()
    await remote.close()
    await asyncio.gather(telling, ended)


async def _ask(remote: RemoteSession) -> None:
    """Say what is typed, beside the script."""
    async for line in typed():
        if line == "status":
            told = None if remote.closed is None else remote.closed.reason.name
            say("status", told=told, ended=remote.ended_by)
            continue
        try:
            await remote.run_input(line)
            say("answer", to=line)
        except RequestFailed as failed:
            say("failed", to=line, outcome=failed.outcome.value, why=failed.why)


def _own_verdict(turns: Sequence[str], heard: Sequence[str]) -> Verdict:
    return Verdict(len(heard) == len(turns), f"{len(heard)} of {len(turns)} turns were answered")


async def _tell(remote: RemoteSession) -> None:
    async for body in remote.events():
        if isinstance(body, SessionClosed):
            say("told", reason=CloseReason(body.reason).name, error=body.error)
        else:
            say("event", what=type(body).__name__)


async def _tell_end(remote: RemoteSession) -> None:
    say("ended", by=await remote.wait_ended())


def run_relay(given: argparse.Namespace) -> None:
    """Join two."""
    serve(given.host, {"host": given.host_port, "remote": given.remote_port}, given.program)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the three; its exit status."""
    given = parser().parse_args(argv)
    try:
        if given.role == "relay":
            run_relay(given)
        else:
            asyncio.run((run_job if given.role == "job" else run_simulator)(given))
    except LabError as error:
        return _fail(error)
    except socket.gaierror as error:
        return _fail(UsageError(f"{given.host} is no host: {error}"))
    except OSError as error:
        return _fail(UsageError(f"The {given.role} cannot begin: {error}", fix="name another address or port"))
    return 0


def _fail(error: LabError) -> int:
    sys.stderr.write(f"{error}\n")
    return error.exit_code
