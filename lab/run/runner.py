"""One run from specification to record."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.core.errors import InvalidRun, LabError, Unsupported, UsageError
from lab.core.fault import Fault
from lab.core.flow import FourTuple
from lab.core.prediction import State
from lab.core.socket import SocketSample
from lab.core.timeline import Observation
from lab.report.folder import RunFolder
from lab.report.record import Record
from lab.report.timeline import TimelineWriter
from lab.run.arrange import Stage, bring_up, hole_before_connect, start
from lab.run.collect import collect
from lab.run.conclude import Known, conclude, unfinished, write_timeline
from lab.run.findings import Findings
from lab.run.flowfinder import (
    TALK_TIMEOUT_S,
    Roll,
    choose,
    find_flow,
    four_tuple,
    refuse_closed,
    refuse_exit,
    sample_of,
    wait_for_talk,
    wait_for_window_probe,
)
from lab.run.forecast import EndForecast, forecast, outdated, read_settings
from lab.run.noticing import has_told
from lab.run.patience import STEP_S, Patience, Stopped
from lab.run.settle import nudge
from lab.run.spec import Action, RunSpec
from lab.run.watch import TELL_S, EndWatch, watch
from lab.run.watched import Watched
from lab.testbed.ports import Counters, CutReceipt, Node, Process, Testbed, TestbedSpec
from lab.testbed.preflight import read_hz, versions

DEFAULT_HZ = 250
CALM_S = 1.05
"""Between the start of the capture and the cut at least: completeness is required for the second before it."""

FORECAST_TRIES = 3
"""How often a forecast is made again whose ground moved while it was made."""

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
    ) -> None:
        self.spec = spec
        self.tell = tell
        self._open = open_testbed
        self._patience = Patience(stop)
        self._start_gate = nullcontext() if start_gate is None else start_gate
        self._programs: dict[str, Process] = {}
        self._before: Mapping[str, Counters] = {}
        self._reconnect: Process | None = None
        hz = read_hz()
        self._known = Known(spec=spec, backend="netns", versions=versions(), hz=hz, started_at=time.time(), settings={})
        self.folder = RunFolder.create(spec.name, started=datetime.now(UTC).astimezone(), out=out)
        # At once, so that there is no moment at which a folder has none.
        self._write(unfinished(self._known, reason="the run did not come to its end", interrupted=True))
        self._timeline = TimelineWriter(self.folder.file("timeline.jsonl"))

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
        return TestbedSpec(ipv6=self.spec.ipv6, firewall=self.spec.firewall)

    def _arrange(self, testbed: Testbed) -> Stage:
        """Bring up everything but the client."""
        nodes = (testbed.client, testbed.router, testbed.server)
        self._know(backend=testbed.backend)
        self._before = {node.name: node.counters() for node in nodes}
        stage = bring_up(testbed, self.folder, self.spec, self._patience)
        self._programs["server"] = stage.server
        self._know(settings={node.name: read_settings(node) for node in nodes})
        return stage

    def _run(self, stage: Stage) -> Record:
        testbed = stage.testbed
        if self.spec.connect_from is None:
            flow = self._connect(stage)
        else:
            flow = hole_before_connect(stage, self.spec.connect_from)
        fault = Fault(flow, self.spec.direction, self.spec.scope, self.spec.placement)
        self._know(flow=flow, fault=fault)
        testbed.router.prepare(fault)
        for node in (testbed.client, testbed.server):
            node.watch(flow)
        self._patience.pause_until(stage.captured_since + CALM_S)
        forecasts = self._forecast(testbed, flow)
        cut = testbed.router.cut(fault)
        self._timeline.anchor(cut.done_at)
        self.observe("router", "cut", cut.done_at, flow=str(flow), direction=self.spec.direction.value)
        if self.spec.connect_from is not None:
            self._programs["client"] = start(self.spec.client, testbed.client)
        healed, until = self._watch(testbed, fault, cut, forecasts)
        watched = Watched(
            spec=self.spec,
            testbed=testbed,
            flow=flow,
            fault=fault,
            cut=cut,
            healed=healed,
            until=until,
            forecasts=forecasts,
            before=self._before,
            programs={name: self._programs.get(name) for name in ("client", "server")},
            bystander=stage.bystander,
            bystander_port=stage.bystander_port,
            reconnect=self._reconnect,
        )
        findings, classes = collect(watched)
        write_timeline(self._timeline, findings, classes, cut.done_at - BEFORE_CUT_S)
        self._tell_end(findings)
        return conclude(self._known, findings)

    def _connect(self, stage: Stage) -> FourTuple:
        """Start the client, find its flow, let it talk, and wait for the moment of the cut."""
        node = stage.testbed.client
        client = self._programs["client"] = start(self.spec.client, node)
        roll = Roll(node, self.spec.port)
        flow = find_flow(roll, client, self.spec.port, self.spec.flow, self._patience)
        self.observe("client", "connected", flow=str(flow))
        self._await_talk(node, client, flow)
        ready_at = self._patience.now()
        self._act([a for a in self.spec.actions if a.at_s < 0], ready_at + self.spec.cut_after_s)
        self._look_on(roll, ready_at + self.spec.cut_after_s)
        flow = self._choose_again(roll, client, flow)
        refuse_exit(stage.server, "could be cut off")
        if self.spec.client_state is State.ZERO_WINDOW:
            wait_for_window_probe(node, flow, self._patience)
        if not self.spec.closes:
            refuse_exit(client, "could be cut off")
            refuse_closed(sample_of(node.sockets(), flow), client)
        return flow

    def _look_on(self, roll: Roll, until: float) -> None:
        """Wait, and where age decides between flows, see each when it appears."""
        if self.spec.flow is None:
            self._patience.pause_until(until)
            return
        while (left_s := until - self._patience.now()) > 0:
            roll.look()
            self._patience.pause(min(STEP_S, left_s))

    def _choose_again(self, roll: Roll, client: Process, flow: FourTuple) -> FourTuple:
        """The flow that the user means of those that are there at the cut; the newest may be another one by now.

        Raises:
            UsageError: several match, and no choice was made.
        """
        open_now = roll.look()
        if self.spec.flow is None and len(open_now) > 1:
            choose(open_now, None)
        if self.spec.flow != "newest" or not open_now or four_tuple(open_now[-1]) == flow:
            return flow
        newest = four_tuple(open_now[-1])
        self.observe("client", "connected", flow=str(newest))
        self._await_talk(roll.node, client, newest)
        return newest

    def _await_talk(self, node: Node, client: Process, flow: FourTuple) -> None:
        if self.spec.talks and not wait_for_talk(node, client, flow, self._patience):
            raise UsageError(
                f"Data in both directions was expected before the cut; after {TALK_TIMEOUT_S:g} s {flow} had none.",
                fix="let the programs exchange something first",
            )

    def _forecast(self, testbed: Testbed, flow: FourTuple) -> dict[str, EndForecast]:
        """State both branches of both ends, and put them on the timeline before the cut."""
        ends = (
            (testbed.client, flow, self.spec.client_state),
            (testbed.server, _seen_from_server(flow), self.spec.server_state),
        )
        forecasts = {node.name: self._forecast_end(node, end, state) for node, end, state in ends}
        self._know(forecasts=forecasts)
        for name, each in forecasts.items():
            for branch, give_up in (("sending", each.sending), ("idle", each.idle)):
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

    def _forecast_end(self, node: Node, end: FourTuple, state: State) -> EndForecast:
        """Both branches of one end; ``end`` has the node's own address first."""
        sample = self._sample(node, end)
        for _ in range(FORECAST_TRIES):
            options = self.spec.declared_options if node.name == "client" else None
            if sample is not None:
                options = node.socket_options(end.client.port, end.server.port)
            made = forecast(
                state,
                sample,
                options,
                self._known.settings[node.name],
                hz=self._known.hz or DEFAULT_HZ,
                writes_on=self.spec.writes_on,
            )
            # A prediction of a quarter of an hour takes its time, in which a keepalive probe may be answered.
            before, sample = sample, self._sample(node, end)
            if not outdated(before, sample):
                break
        return made

    def _sample(self, node: Node, end: FourTuple) -> SocketSample | None:
        sample = sample_of(node.sockets(), end)
        if sample is None and self.spec.connect_from is None:
            raise InvalidRun(f"The {node.name}'s kernel does not list {end}, the flow that was about to be cut.")
        return sample

    def _watch(
        self, testbed: Testbed, fault: Fault, cut: CutReceipt, forecasts: Mapping[str, EndForecast]
    ) -> tuple[CutReceipt | None, float]:
        """Act and heal on time, and watch until the fates are known."""
        planned = [(action.at_s, partial(self._do, action)) for action in self.spec.actions if action.at_s >= 0]
        if self.spec.reconnect_at_s is not None:
            planned.append((self.spec.reconnect_at_s, partial(self._try_new_connection, testbed)))
        heal_at = None if self.spec.heal_after_s is None else cut.done_at + self.spec.heal_after_s
        healed: list[CutReceipt] = []
        flow = fault.flow
        ends = [
            EndWatch("client", forecasts["client"], lambda: testbed.client.track(flow)),
            EndWatch("server", forecasts["server"], lambda: testbed.server.track(flow)),
        ]

        def do_what_is_due() -> None:
            now = self._patience.now()
            while planned and cut.done_at + planned[0][0] <= now:
                planned.pop(0)[1]()
            if heal_at is not None and not healed and now >= heal_at:
                nudge(testbed, fault)
                healed.append(testbed.router.heal(fault))
                for end in ends:
                    end.healed_at = healed[0].done_at
                self.observe("router", "heal", healed[0].done_at)

        def next_at() -> float | None:
            instants = [cut.done_at + at for at, _ in planned]
            if heal_at is not None and not healed:
                instants.append(heal_at)
            return min(instants, default=None)

        planned.sort(key=lambda pair: pair[0])
        until = watch(
            ends,
            cut.done_at,
            self.spec.watch_s,
            self._patience,
            do_what_is_due=do_what_is_due,
            next_at=next_at,
            on_look=lambda: self.tell(Observation(self._patience.now(), "lab", "look", {"ends": ends})),
            told=lambda: not ends[0].gone or self._client_has_told(cut.done_at),
            # Whoever says for how long and for what to look is taken at his word.
            tell_s=math.inf if self.spec.noticed and self.spec.watch_s else TELL_S,
        )
        return (healed[0] if healed else None), until

    def _client_has_told(self, cut_at: float) -> bool:
        return has_told(self._programs.get("client"), cut_at, pattern=self.spec.noticed, own=self.spec.client.own)

    def _tell_end(self, found: Findings) -> None:
        for end in found.ends:
            if end.fate.gone_at is not None:
                detail = {"cause": end.fate.cause, "within_s": end.fate.within_s}
                self.observe(end.name, "gave-up", end.fate.gone_at, **detail)
            if end.noticing.at is not None:
                self.observe(end.name, "noticed", end.noticing.at, by=end.noticing.by, errno=end.noticing.errno)
        if found.reconnected is not None:
            self.observe("client", "reconnected", connected=found.reconnected)
        self.observe("lab", "bystander", alive=found.bystander.alive, lost=found.bystander.lost)

    def _act(self, actions: Sequence[Action], cut_at: float) -> None:
        for action in sorted(actions, key=lambda a: a.at_s):
            self._patience.pause_until(cut_at + action.at_s)
            self._do(action)

    def _do(self, action: Action) -> None:
        if action.signal is None:
            try:
                self._programs[action.node].write(action.text + "\n")
            except OSError as error:
                ended = self._programs[action.node].returncode
                state = "reads nothing" if ended is None else f"has ended with status {ended}"
                raise InvalidRun(f"The {action.node} was to be told {action.text!r}; its program {state}.") from error
            self.observe(action.node, "action", text=action.text)
        else:
            self._programs[action.node].send_signal(action.signal)
            self.observe(action.node, "action", signal=action.signal)

    def _try_new_connection(self, testbed: Testbed) -> None:
        self.observe("client", "reconnect")
        self._reconnect = testbed.client.spawn_module(
            "lab.programs.client", ("server", str(self.spec.port), "--connect-only")
        )

    def _know(self, **facts: object) -> None:
        self._known = replace(self._known, **facts)  # type: ignore[arg-type]  # names are Known's own

    def _write(self, record: Record) -> None:
        self.folder.write_record(record.model_copy(update={"artefacts": self.folder.artefacts()}))

    def _write_output(self) -> None:
        for name, process in self._programs.items():
            lines = "".join(f"{line.at:.6f} {line.stream} {line.text}\n" for line in process.lines)
            with contextlib.suppress(OSError):
                self.folder.file(f"{name}.log").write_text(lines, encoding="utf-8")


def _seen_from_server(flow: FourTuple) -> FourTuple:
    # ``sample_of`` looks for (local, remote); at the server's end these are the other way round.
    return FourTuple(client=flow.server, server=flow.client)
