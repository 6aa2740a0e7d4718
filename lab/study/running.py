"""Performs one session in a testbed of its own.

Where packets are lost, the session is a whole run of the lab: its cut follows the assistant's mark, and so do the heal
and the end of the watch, and its record proves that nothing passed. Every other session is played plainly, in the same
kind of folder.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from lab.core.errors import InvalidRun, UsageError
from lab.core.profiles import profile_named
from lab.core.timeline import Observation
from lab.report.record import Outcome, Record
from lab.run.flowfinder import tail
from lab.run.patience import Patience
from lab.run.runner import Opener, Run
from lab.run.spec import RunSpec
from lab.run.trigger import LineTrigger
from lab.study.commands import PORT, Casting, Modules
from lab.study.plain import Performance, TooSlow, play
from lab.study.reading import Said
from lab.study.scenario import Loss, Mark, Scenario, Step
from lab.study.session_record import SessionRecord, events_of
from lab.testbed.ports import Process

CUT_WITHIN_S = 90.0
"""From the assistant's connection to its mark: speech, a call, and a follow-up take some 15 s."""

LOST = r'"event": ?"lost"'
DONE = r'"event": ?"done"'


def perform(
    scenario: Scenario,
    number: int = 0,
    *,
    open_testbed: Opener,
    out: Path,
    real: bool = False,
    gate: AbstractContextManager[object] | None = None,
    stop: threading.Event | None = None,
    backend: str = "netns",
    modules: Modules | None = None,
    text: bool = False,
    frames: bool = False,
) -> SessionRecord:
    """Perform one session.

    Args:
        scenario: What happens in it.
        number: Which of its sessions, from 0: says which script it has, and seeds the server.
        open_testbed: Brings up the backend.
        out: For everything that it leaves; new or empty.
        real: With real waits.
        gate: Held while testbed and programs start, as ``Run`` holds it.
        stop: Set by another thread to end it early.
        backend: What ``open_testbed`` brings up; in namespaces programs write into ``out``.
        modules: The programs, where they are not the lab's own.
        text: The assistant types instead of speaking.
        frames: The server writes down every frame.

    Returns:
        The session; INVALID, with the reason, where something went wrong that is nobody's mistake.

    Raises:
        UsageError: the script asks for what this kind of loss does not have.
        EnvironmentNotReady: nothing can be performed here.
        Unsupported: the kernel lacks what the scenario needs.
        Stopped: by ``stop``.
    """
    variant = scenario.variant(number, real=real)
    _refuse_marks(scenario, variant.steps)
    folder = out.absolute() if backend == "netns" else None
    casting = Casting(scenario, number, variant, modules or Modules(), folder, text=text, frames=frames)
    session = _Session(casting, real, out, open_testbed, nullcontext() if gate is None else gate, stop)
    return session.cut(backend) if scenario.loss is Loss.PACKET_LOSS else session.played()


def run_spec(casting: Casting) -> RunSpec:
    """The run of the lab that a session with packet loss is."""
    variant, asked = casting.variant, _asked(casting.variant.steps)
    return RunSpec(
        server=casting.server(),
        client=casting.client(),
        port=PORT,
        name=casting.scenario.id,
        profile=profile_named(variant.kernel.profile),
        sysctls=variant.kernel.sysctls,
        preload=casting.modules.preload,
        # A script that got stuck before its mark is over: there is nothing to wait for.
        cut_when=LineTrigger("client", f"{_said(Mark.CUT)}|{DONE}", within_s=min(CUT_WITHIN_S, variant.limit_s)),
        heal_when=LineTrigger("client", _said(Mark.HEAL), within_s=variant.limit_s) if asked[Mark.HEAL] else None,
        end_when=LineTrigger("client", DONE),
        watch_s=variant.limit_s,
        noticed=LOST,
    )


class _Session:
    """One session on its way to its record."""

    def __init__(
        self,
        casting: Casting,
        real: bool,
        out: Path,
        open_testbed: Opener,
        gate: AbstractContextManager[object],
        stop: threading.Event | None,
    ) -> None:
        self._casting = casting
        self._real = real
        self._out = out
        self._open = open_testbed
        self._gate = gate
        self._stop = stop
        self._seen: dict[str, list[Observation]] = {}

    def cut(self, backend: str) -> SessionRecord:
        """With packet loss."""
        run = Run(
            run_spec(self._casting),
            self._open,
            out=self._out,
            tell=self._tell,
            stop=self._stop,
            start_gate=self._gate,
            backend=backend,
        )
        reason, disturbed = None, False
        try:
            record: Record | None = run.execute()
        except (InvalidRun, UsageError) as error:
            # A line that never comes is a mistake of whoever wrote the program; the rest is the machine's.
            record, reason, disturbed = run.folder.read_record(), str(error), isinstance(error, InvalidRun)
        assert record is not None
        played = Performance(dict(run.programs), self._obeyed())
        if record.outcome is Outcome.INVALID:
            reason, disturbed = reason or record.reason or "the lab's run is INVALID", disturbed or record.disturbed
        if reason is None and (reason := _unfinished(played)) is not None:
            disturbed = played.programs["client"].returncode is None and played.programs["server"].returncode is None
        return self._record(played, reason, record, disturbed=disturbed)

    def played(self) -> SessionRecord:
        """Without."""
        played = Performance()
        reason, disturbed = None, False
        try:
            play(self._casting, self._open, self._out, gate=self._gate, patience=Patience(self._stop), played=played)
        except InvalidRun as error:
            reason, disturbed = str(error), isinstance(error, TooSlow)
        return self._record(played, reason, None, disturbed=disturbed)

    def _record(
        self, played: Performance, reason: str | None, record: Record | None, *, disturbed: bool
    ) -> SessionRecord:
        cuts = self._seen.get("cut", [])
        return SessionRecord(
            scenario=self._casting.scenario,
            number=self._casting.number,
            real=self._real,
            folder=self._out,
            assistant=_events(played.programs.get("client")),
            server=_events(played.programs.get("server")),
            proxy=_events(played.programs.get("proxy")),
            record=record,
            cut_at=cuts[0].at if cuts else None,
            marks=tuple(played.marks),
            invalid=reason,
            disturbed=disturbed,
        )

    def _tell(self, seen: Observation) -> None:
        if seen.kind in ("line", "cut", "heal"):
            self._seen.setdefault(seen.kind, []).append(seen)

    def _obeyed(self) -> list[tuple[str, float, float]]:
        """The marks that the run's triggers followed."""
        done = {name: self._seen[name][0].at for name in ("cut", "heal") if name in self._seen}
        lines = {str(line.detail["then"]): line.at for line in self._seen.get("line", [])}
        return [(name, lines[name], at) for name, at in done.items() if name in lines]


def _unfinished(played: Performance) -> str | None:
    """Why a run that proved itself is no session: a program ended, or not every mark was obeyed."""
    client, server = played.programs["client"], played.programs["server"]
    said = _events(client)
    if server.returncode is not None:
        return f"the server ended with status {server.returncode}. {tail(server)}"
    if not any(each["event"] == "done" for each in said):
        ended = "was not over in time" if client.returncode is None else f"ended with status {client.returncode}"
        return f"the assistant's script {ended}. {tail(client)}"
    asked = Counter(str(each.get("name")) for each in said if each["event"] == "mark")
    obeyed = Counter(name for name, _, _ in played.marks)
    if asked != obeyed:
        return f"the assistant asked for {dict(asked)}; {dict(obeyed)} was done"
    return None


def _events(process: Process | None) -> tuple[Said, ...]:
    return () if process is None else events_of(line.text for line in process.lines)


def _refuse_marks(scenario: Scenario, steps: Sequence[Step]) -> None:
    """See that everything can be done that the script will ask for.

    Raises:
        UsageError: something cannot.
    """
    asked = _asked(steps)
    can = {
        Loss.PACKET_LOSS: {Mark.CUT: 1, Mark.HEAL: 1},
        Loss.FREEZE: {Mark.FREEZE: len(steps), Mark.UNFREEZE: len(steps)},
        Loss.ADDRESS: {Mark.MOVE_ADDRESS: len(steps)},
    }.get(scenario.loss, {})
    for mark, times in asked.items():
        if times > can.get(mark, 0):
            raise UsageError(f"{scenario.id} asks {times} times for {mark.value}; {scenario.loss.value} has that not.")
    if scenario.loss is Loss.PACKET_LOSS and not asked[Mark.CUT]:
        raise UsageError(f"{scenario.id} is about packet loss, and asks for no cut.")


def _asked(steps: Sequence[Step]) -> Counter[Mark]:
    return Counter(Mark(step["name"]) for step in steps if step["do"] == "mark")


def _said(mark: Mark) -> str:
    return rf'"event": ?"mark".*"name": ?"{mark.value}"'
