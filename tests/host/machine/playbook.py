"""A host, a job or a remote as a script: what happens, and under it, behind ``>``, what has to be done.

::

    register s1
    < 1 Ping                      the remote asks
    > ask s1 1 Ping
    answer 1 Pong
    > send 1 Pong
    s1 closed ERROR broken
    > send closed ERROR broken

Notes are collected apart. A line may begin with its instant, ``@3.0``.
"""

from collections.abc import Callable, Iterable

from lab.host.machine import commands as c
from lab.host.machine.host import HostMachine
from lab.host.machine.job import JobMachine
from lab.host.machine.variant import REPAIRED, Variant
from lab.host.protocol import messages as m
from lab.host.protocol.errors import FrameTooLong, NoMessage

Doing = c.HostCommand | c.JobCommand | c.RemoteCommand


class Play:
    """A script's runner; a subclass knows what its machine's lines mean."""

    def __init__(self) -> None:
        self.now = 0.0
        self.notes: list[c.Note] = []

    def run(self, script: str) -> None:
        lines = [line.split("#")[0].strip() for line in script.strip().splitlines()]
        at = 0
        lines = [line for line in lines if line]
        while at < len(lines):
            wanted = []
            done = self.line(lines[at])
            cause, at = lines[at], at + 1
            while at < len(lines) and lines[at].startswith("> "):
                wanted.append(lines[at][2:])
                at += 1
            assert done == wanted, f"after {cause!r}"

    def line(self, line: str) -> list[str]:
        if line.startswith("@"):
            instant, _, line = line.partition(" ")
            self.now = float(instant[1:])
        verb, *words = line.split()
        return self.told(self.act(verb, words))

    def act(self, verb: str, words: list[str]) -> Iterable[Doing]:
        raise NotImplementedError

    def told(self, commands: Iterable[Doing]) -> list[str]:
        lines = []
        for command in commands:
            if isinstance(command, c.Note):
                self.notes.append(command)
            else:
                lines.append(word(command))
        return lines


def word(command: Doing) -> str:
    """A command as a line."""
    match command:
        case c.Send(message):
            return f"send {_message(message)}"
        case c.AskSession(session, request, ask):
            return f"ask {session} {request} {type(ask).__name__}"
        case c.AskJob(request):
            return f"job {request}"
        case c.Delivered(request, delivered):
            return f"{'delivered' if delivered else 'undelivered'} {request}"
        case c.CloseTransport(by):
            return "abort" if by is None else f"close by {by:g}"
        case c.CloseSession(session, reason):
            return f"close {session} {reason.name}"
        case c.TellClosed(session, reason, error):
            return f"tell {session} {reason.name} {error}"
        case c.Judge(provisional):
            return f"judge {provisional.success}"
        case c.Reply(request, verdict, error):
            return f"reply {request} {error or (verdict.reason if verdict else 'no verdict')}"
        case c.MakeHost(session, room):
            return f"host {session} {room}"
        case c.CloseHost(session):
            return "closehost" if session is None else f"closehost {session}"
        case c.DeleteRoom(room):
            return f"delete {room}"
        case c.Settle(request, outcome, answer, error):
            return f"settle {request} {outcome.value}" + (f" {error}" if error else f" {type(answer).__name__}")
        case c.Emit(event):
            return f"emit {type(event.body).__name__}"
        case c.Dead(silent_s):
            return f"dead {silent_s:g}"
        case _:
            return type(command).__name__.lower() + "".join(f" {value}" for value in _values(command))


def _values(command: Doing) -> list[str]:
    return [str(getattr(command, name)) for name in type(command).__slots__ if isinstance(getattr(command, name), str)]


def _message(message: m.Message) -> str:
    match message:
        case m.Event(body=m.SessionClosed(reason, error)):
            return f"closed {reason.name}" + (f" {error}" if error else "")
        case m.Event(body=m.ErrorTold(sentence)):
            return f"complaint {sentence}"
        case m.Event(body):
            return f"event {type(body).__name__}"
        case m.Response(request, answer, error):
            return f"{request} {error or type(answer).__name__}"
        case m.Request(request, ask):
            return f"{request} {type(ask).__name__}"
        case _:
            return type(message).__name__


ANSWERS: dict[str, m.Answer] = {"Pong": m.Pong(), "Finalized": m.Finalized(), "SessionState": m.SessionState()}
BODIES = {"state": m.AgentStateChanged()}


def asked(request: str, kind: str) -> m.Request:
    made: dict[str, Callable[[], m.Ask]] = {
        "Ping": m.Ping,
        "State": m.GetSessionState,
        "Finalize": m.FinalizeSimulation,
    }
    return m.Request(request, made[kind]() if kind in made else None)


class HostPlay(Play):
    def __init__(self, variant: Variant = REPAIRED) -> None:
        super().__init__()
        self.host = HostMachine(variant)

    def act(self, verb: str, words: list[str]) -> Iterable[Doing]:
        match verb, words:
            case "register", [session]:
                return self.host.register(session)
            case "unregister", [session]:
                return self.host.unregister(session)
            case "<", [request, kind]:
                return self.host.receive(asked(request, kind))
            case "<response", [request]:
                return self.host.receive(m.Response(request))
            case "<event", []:
                return self.host.receive(m.Event(m.ErrorTold("no")))
            case "<garbage", []:
                return self.host.malformed(NoMessage("none"), now=self.now)
            case "<long", []:
                return self.host.malformed(FrameTooLong(2, 1), now=self.now)
            case "answer", [request, kind]:
                return self.host.answered(request, ANSWERS[kind], now=self.now)
            case "fail", [request, *words]:
                return self.host.answered(request, None, " ".join(words), now=self.now)
            case "close", []:
                return self.host.close(now=self.now)
            case "flushed", []:
                return self.host.flushed(None)
            case "flushed", [request]:
                return self.host.flushed(request)
            case "unsent", [request]:
                return self.host.unsent(request)
            case "lost", []:
                return self.host.lost("reset")
            case "wake", []:
                return self.host.wake(now=self.now)
            case session, ["happened"]:
                return self.host.happened(session, m.AgentStateChanged())
            case session, ["closed", reason, *words]:
                return self.host.session_closed(session, m.CloseReason[reason], " ".join(words) or None)
            case _:
                raise AssertionError(verb, words)


class JobPlay(Play):
    def __init__(self, *, simulated: bool = True, variant: Variant = REPAIRED) -> None:
        super().__init__()
        self.job = JobMachine("room", simulated=simulated, session_end_timeout_s=10.0, variant=variant)

    def act(self, verb: str, words: list[str]) -> Iterable[Doing]:
        job, now = self.job, self.now
        match verb, words:
            case "started", [session, room]:
                return job.started(session, room)
            case "closed", [session]:
                return job.session_closed(session, now=now)
            case "finalize", [request]:
                return job.finalize(request, m.FinalizeSimulation())
            case "judged", ["none"]:
                return job.judged(None)
            case "judged", [reason]:
                return job.judged(m.Verdict(True, reason))
            case "failed", [error]:
                return job.judged(None, error)
            case "replied", [delivered]:
                return job.replied(delivered=delivered == "yes", now=now)
            case "left", []:
                return job.simulator_left(now=now)
            case "delete", [room, *reason]:
                return job.delete_room(room, m.CloseReason[reason[0]] if reason else m.CloseReason.COMPLETED, now=now)
            case "shutdown", []:
                return job.shutdown(m.CloseReason.JOB_SHUTDOWN, now=now)
            case "hostclosed", []:
                return job.host_closed()
            case "hostclosed", [session]:
                return job.host_closed(session)
            case "wake", []:
                return job.wake(now=now)
            case _:
                raise AssertionError(verb, words)
