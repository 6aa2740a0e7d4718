"""One run from specification to record."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.core.errors import InvalidRun, LabError, Unsupported
from lab.core.fault import Fault
from lab.core.flow import FourTuple
from lab.core.timeline import Observation
from lab.report.folder import RunFolder
from lab.report.record import Record
from lab.report.timeline import TimelineWriter
from lab.run.agenda import Agenda
from lab.run.arrange import Stage, bring_up, hole_before_connect, start
from lab.run.collect import collect
from lab.run.conclude import Known, conclude, unfinished, write_timeline
from lab.run.connect import Connecting
from lab.run.cue import Cue
from lab.run.findings import Findings
from lab.run.forecast import read_settings
from lab.run.foresight import Forecasts, Foresight
from lab.run.noticing import has_told
from lab.run.patience import Patience, Stopped
from lab.run.proofs import named
from lab.run.settings import at_creation
from lab.run.sides import translated
from lab.run.spec import RunSpec, inside
from lab.run.trigger import LineTrigger
from lab.run.watch import TELL_S, EndWatch, watch
from lab.run.watched import Watched
from lab.testbed.ports import Counters, Process, Testbed, TestbedSpec
from lab.testbed.preflight import read_hz, versions

DEFAULT_HZ = 250
CALM_S = 1.05
"""Between the start of the capture and the cut at least: completeness is required for the second before it."""

BEFORE_CUT_S = 2.0
"""How much of the talk before the cut goes onto the timeline."""

Opener = Callable[[TestbedSpec], Testbed]


class Run:
    """One run; ``execute`` does it all.

    Args:
        spec: What to do.
        open_testbed: Brings up the backend.
        out: Folder for everything; a fresh one under ``runs/`` where None.
        tell: Called with each observation as it is made; narrates.
        stop: Set by another thread to end the run early; its record is then INVALID.
        start_gate: Held while testbed and programs start, which is when a run needs a processor; many runs at once
            share one, so that none's start-up delays another's dating.
        backend: What ``open_testbed`` brings up, for the record of a run that gets no testbed.
    """

    def __init__(
        self,
        spec: RunSpec,
        open_testbed: Opener,
        *,
        out: Path | None = None,
        tell: Callable[[Observation], None] = lambda _: None,
        stop: threading.Event | None = None,
        start_gate: AbstractContextManager[object] | None = None,
        backend: str = "netns",
    ) -> None:
        self.spec = spec
        self.tell = tell
        self._open = open_testbed
        self._patience = Patience(stop)
        self._start_gate = nullcontext() if start_gate is None else start_gate
        self._programs: dict[str, Process] = {}
        self._stated: Forecasts = {}
        """What was said of both ends before the line came that the cut follows."""

        self._wake = threading.Event()
        """Set when a line has come that something follows."""

        self._before: Mapping[str, Counters] = {}
        hz = read_hz()
        self._known = Known(spec=spec, backend=backend, versions=versions(), hz=hz, started_at=time.time(), settings={})
        self.folder = RunFolder.create(spec.name, started=datetime.now(UTC).astimezone(), out=out)
        # At once, so that there is no moment at which a folder has none.
        self._write(unfinished(self._known, reason="the run did not come to its end", interrupted=True))
        self._timeline = TimelineWriter(self.folder.file("timeline.jsonl"))

    @property
    def programs(self) -> Mapping[str, Process]:
        """The programs of the nodes that were started, by node; their output is there when the run is over, too."""
        return self._programs

    def execute(self) -> Record:
        """Arrange, predict, cut, watch, judge; the record is on disk whatever happens.

        Raises:
            LabError: nothing could be judged; an INVALID or UNSUPPORTED record says why.
            KeyboardInterrupt: passed on once the record is written.
        """
        try:
            record = self._perform()
        except Stopped:
            self._write(unfinished(self._known, reason="the run was asked to end early", interrupted=True))
            raise
        except KeyboardInterrupt:
            self._write(unfinished(self._known, reason="the run was interrupted", interrupted=True))
            raise
        except LabError as error:
            self._write(unfinished(self._known, reason=str(error), unsupported=isinstance(error, Unsupported)))
            raise
        except Exception as error:
            self._write(unfinished(self._known, reason=f"the lab failed: {type(error).__name__}: {error}"))
            raise
        self._write(record)
        return self.folder.read_record()

    def _perform(self) -> Record:
        """Everything between the first record and the last."""
        try:
            with self._timeline, contextlib.ExitStack() as testbeds:
                with self._start_gate:
                    testbed = testbeds.enter_context(self._open(self._testbed_spec()))
                    testbeds.enter_context(_interventions_named(testbed))
                    stage = self._arrange(testbed)
                return self._run(stage)
        finally:
            self._write_output()

    def observe(self, source: str, kind: str, at: float | None = None, **detail: object) -> None:
        """Put one fact on the timeline and tell it."""
        observation = Observation(self._patience.now() if at is None else at, source, kind, detail)
        self._timeline.add(observation)
        self.tell(observation)

    def _testbed_spec(self) -> TestbedSpec:
        spec = self.spec
        return TestbedSpec(
            ipv6=spec.ipv6,
            firewall=spec.firewall,
            sysctls=at_creation(spec),
            preload=spec.preload,
            uplink=spec.uplink,
        )

    def _arrange(self, testbed: Testbed) -> Stage:
        """Bring up everything but the client."""
        nodes = (testbed.client, testbed.router, testbed.server)
        self._know(backend=testbed.backend)
        self._before = {node.name: node.counters() for node in nodes}
        stage = bring_up(testbed, self.folder, self.spec, self._patience, self._programs)
        # With an outside server the server node is the bystander's alone.
        told = nodes if self.spec.uplink is None else nodes[:2]
        self._know(settings={node.name: read_settings(node) for node in told})
        return stage

    def _run(self, stage: Stage) -> Record:
        testbed = stage.testbed
        agenda = Agenda(self.spec, testbed, self._programs, self._patience, self.observe)
        foresight = Foresight(self.spec, testbed, self._known.settings, self._known.hz or DEFAULT_HZ)
        flow = self._flow_at_cut(stage, agenda, foresight)
        fault = self._make_ready(stage, flow)
        translations = {} if self.spec.uplink is None else translated(testbed.router)
        look = foresight.look(flow) if self._stated else None
        forecasts = self._stated or self._state(foresight.forecast(flow))
        cut = testbed.router.cut(fault)
        self._know(cut=cut)
        self._timeline.anchor(cut.done_at)
        self.observe("router", "cut", cut.done_at, flow=str(flow), direction=self.spec.direction.value)
        if self.spec.connect_from is not None:
            self._programs["client"] = start(self.spec.client, testbed.client)
        if look is not None:
            foresight.require_options(flow, forecasts)
        agenda.begin(fault, cut.done_at, self._cue(self.spec.heal_when, cut.began_at))
        until = self._watch(stage.testbed, flow, cut.done_at, forecasts, agenda)
        agenda.refuse_silence()
        if look is not None:
            forecasts = foresight.anew(forecasts, look)
            self._know(forecasts=forecasts)
        watched = Watched(
            spec=self.spec,
            testbed=testbed,
            flow=flow,
            fault=fault,
            cut=cut,
            healed=agenda.healed,
            until=until,
            forecasts=forecasts,
            before=self._before,
            translations=translations,
            programs={name: self._programs.get(name) for name in ("client", "server")},
            bystander=stage.bystander,
            bystander_port=stage.bystander_port,
            reconnect=agenda.reconnect,
        )
        findings, classes = collect(watched)
        write_timeline(self._timeline, findings, classes, cut.done_at - BEFORE_CUT_S)
        self._tell_end(findings)
        return conclude(self._known, findings)

    def _flow_at_cut(self, stage: Stage, agenda: Agenda, foresight: Foresight) -> FourTuple:
        """Start the client, and wait until its flow is to be cut."""
        if self.spec.connect_from is not None:
            return hole_before_connect(stage, self.spec.connect_from)
        client = self._programs["client"] = start(self.spec.client, stage.testbed.client)
        cue = self._cue(self.spec.cut_when)
        connecting = Connecting(stage, client, self._patience, self.observe)
        flow = connecting.first_flow()
        if cue is None:
            connecting.await_time(agenda)
        else:
            # Everything that can be done before the line is: what is left is looking at the flow once more.
            self._make_ready(stage, flow)
            # A flow that is gone already is for whoever waits for the line to tell.
            with contextlib.suppress(InvalidRun):
                self._stated = self._state(foresight.forecast(flow))
            cue.await_due(self._patience)
            assert cue.line is not None
            self.observe(cue.trigger.node, "line", cue.line.at, text=cue.line.text, then="cut")
        chosen = connecting.flow_at_cut(flow)
        if chosen != flow:
            # A newer one than was spoken of.
            self._stated = {}
        return chosen

    def _make_ready(self, stage: Stage, flow: FourTuple) -> Fault:
        """Have rules and samplers for this flow, and a capture that is old enough; nothing where they are there."""
        fault = Fault(flow, self.spec.direction, self.spec.scope, self.spec.placement)
        if self._known.fault == fault:
            return fault
        self._know(flow=flow, fault=fault)
        stage.testbed.router.prepare(fault)
        for node in inside(stage.testbed, self.spec):
            node.watch(flow)
        self._patience.pause_until(stage.captured_since + CALM_S)
        return fault

    def _cue(self, trigger: LineTrigger | None, since: float = 0.0) -> Cue | None:
        """What waits for a line; None where none is waited for."""
        return None if trigger is None else Cue(trigger, self._programs[trigger.node], self._wake, since=since)

    def _state(self, forecasts: Forecasts) -> Forecasts:
        """Put all branches of both ends on the timeline, and into the record of whatever comes."""
        self._know(forecasts=forecasts)
        for name, each in forecasts.items():
            for branch, give_up in (("sending", each.sending), ("idle", each.idle), ("closing", each.closing)):
                if give_up is None:
                    continue
                self.observe(
                    name,
                    "prediction",
                    branch=branch,
                    cause=give_up.cause.value,
                    window_s=give_up.window_s,
                    copies=give_up.copies,
                    copy_times_s=[copy.time_s for copy in give_up.copy_times],
                )
        return forecasts

    def _watch(self, testbed: Testbed, flow: FourTuple, cut_at: float, forecasts: Forecasts, agenda: Agenda) -> float:
        """Act and heal on time, and watch until the fates are known; when that was, CLOCK_MONOTONIC."""
        ends = [
            EndWatch(node.name, forecasts[node.name], partial(node.track, flow)) for node in inside(testbed, self.spec)
        ]

        end_cue = self._cue(self.spec.end_when, cut_at)

        def do_what_is_due() -> None:
            agenda.do_what_is_due()
            if end_cue is not None and self.spec.watch_s is None:
                end_cue.require(self._patience.now(), cut_at)
            for end in ends:
                end.healed_at = None if agenda.healed is None else agenda.healed.done_at

        def told() -> bool:
            client = self._programs.get("client")
            return has_told(client, cut_at, pattern=self.spec.noticed, own=self.spec.client.own)

        until = watch(
            ends,
            cut_at,
            self.spec.watch_s,
            self._patience,
            do_what_is_due=do_what_is_due,
            next_at=agenda.next_at,
            on_look=lambda: self.tell(Observation(self._patience.now(), "lab", "look", {"ends": ends})),
            told=lambda: not ends[0].gone or told(),
            # Whoever says for how long and for what to look is taken at his word.
            tell_s=math.inf if self.spec.noticed and self.spec.watch_s else TELL_S,
            outside=self.spec.uplink is not None,
            wake=self._wake,
            waits=lambda: end_cue is not None or agenda.waits,
            end_at=lambda: None if end_cue is None else end_cue.over_at(self._patience.now()),
        )
        if end_cue is not None and end_cue.line is not None:
            self.observe(end_cue.trigger.node, "line", end_cue.line.at, text=end_cue.line.text, then="end")
        return until

    def _tell_end(self, found: Findings) -> None:
        for end in found.ends:
            if end.fate.gone_at is not None:
                detail = {"cause": end.fate.cause, "within_s": end.fate.within_s}
                self.observe(end.name, "gave-up", end.fate.gone_at, **detail)
            if end.let_go_at is not None:
                self.observe(end.name, "closed", end.let_go_at, held_at=end.fate.held_at)
            if end.orphan is not None and end.orphan.gone_at is not None:
                detail = {"cause": end.orphan.cause, "within_s": end.orphan.within_s}
                self.observe(end.name, "orphan-gone", end.orphan.gone_at, **detail)
            if end.noticing.at is not None:
                self.observe(end.name, "noticed", end.noticing.at, by=end.noticing.by, errno=end.noticing.errno)
        if found.reconnected is not None:
            self.observe("client", "reconnected", connected=found.reconnected)
        self.observe("lab", "bystander", alive=found.bystander.alive, lost=found.bystander.lost)

    def _know(self, **facts: object) -> None:
        self._known = replace(self._known, **facts)  # type: ignore[arg-type]  # names are Known's own

    def _write(self, record: Record) -> None:
        self.folder.write_record(record.model_copy(update={"artefacts": self.folder.artefacts()}))

    def _write_output(self) -> None:
        for name, process in self._programs.items():
            lines = "".join(f"{line.at:.6f} {line.stream} {line.text}\n" for line in process.lines)
            with contextlib.suppress(OSError):
                self.folder.file(f"{name}.log").write_text(lines, encoding="utf-8")


@contextlib.contextmanager
def _interventions_named(testbed: Testbed) -> Iterator[None]:
    """What fails in a testbed that somebody else has touched failed by that.

    Raises:
        InvalidRun: somebody did.
    """
    try:
        yield
    except Stopped:
        raise
    except Exception as error:
        done = testbed.interventions()
        if not done:
            raise
        raise InvalidRun(
            f"Somebody else touched the testbed: {named(done)}. Then this failed: {error}",
            fix="leave the run's containers and networks alone, then run again",
        ) from error
