"""Turns findings into the record, and the captures into the timeline."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from lab.core.fault import Fault
from lab.core.flow import FourTuple
from lab.core.hole import Passage
from lab.core.kernel import LINUX_DEFAULTS
from lab.core.profiles import real_world
from lab.core.retransmission import Classified
from lab.core.segment import Flag
from lab.core.socket import SocketSample
from lab.core.timeline import Observation
from lab.core.uplink import Uplink
from lab.core.verdict import Check as CoreCheck
from lab.core.verdict import Kind, judge, why
from lab.core.verdict import Outcome as CoreOutcome
from lab.report import record as r
from lab.report.timeline import TimelineWriter
from lab.report.verdict import verdict
from lab.run.checks import disturbed, judged
from lab.run.conclude_end import branch_of, observation_of, observed_far, prediction_of
from lab.run.findings import EndFinding, FarFinding, Findings
from lab.run.forecast import EndForecast
from lab.run.spec import RunSpec
from lab.testbed.ports import CutReceipt


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a run before anything is judged; each part is None until it is."""

    spec: RunSpec
    backend: str
    versions: Mapping[str, str]
    hz: int | None
    started_at: float
    """Unix time."""

    settings: Mapping[str, Mapping[str, str]]
    """Per node, the sysctls that decide, as read."""

    fault: Fault | None = None
    flow: FourTuple | None = None
    forecasts: Mapping[str, EndForecast] | None = None
    cut: CutReceipt | None = None


def conclude(known: Known, found: Findings) -> r.Record:
    """The record of a run that was watched to its end."""
    checks = judged(found)
    outcome = judge(checks)
    confirmed = outcome is CoreOutcome.CONFIRMED
    base = unfinished(known, reason=None if confirmed else why(checks))
    cut_at = found.cut.done_at
    offset = found.capture.clocks[0].offset
    record = base.model_copy(
        update={
            "outcome": r.Outcome(outcome.value),
            "interrupted": False,
            "disturbed": disturbed(checks),
            "horizon_s": found.horizon_s,
            "fault": base.fault.model_copy(
                update={
                    "cut_at": cut_at + offset,
                    "healed_at": None if found.healed is None else found.healed.done_at + offset,
                    "matched": r.MatchedPackets(forward=found.matched.forward, return_=found.matched.return_),
                }
            ),
            "uplink": _uplink(known.spec.uplink, found.far),
            "prediction": r.Prediction(**{end.name: prediction_of(end, cut_at) for end in found.ends}),
            "observation": r.Observed(
                client=observation_of(found.client, found),
                server=observed_far(found) if found.server is None else observation_of(found.server, found),
                bystander=r.Bystander(alive=found.bystander.alive, lost=found.bystander.lost),
                reconnected=found.reconnected,
                crossed=r.Crossed(**crossed_summary(found.passages), icmp=found.icmp),
            ),
            "real_world": _real_world(found),
            "counters": {node: dict(moved) for node, moved in found.counters.items()},
            "checks": tuple(_check(check) for check in checks),
        }
    )
    # Confirmed, but less was put to the test than whoever reads no more than the outcome would think.
    return record.model_copy(update={"reason": verdict(record)}) if confirmed and record.ends_closed else record


def _uplink(uplink: Uplink | None, far: FarFinding | None) -> r.UplinkRecord | None:
    if uplink is None:
        return None
    translated = None if far is None or far.translated is None else str(far.translated.client)
    return r.UplinkRecord(host=uplink.host, port=uplink.port, address=uplink.address, translated=translated)


def unfinished(known: Known, *, reason: str | None, interrupted: bool = False, unsupported: bool = False) -> r.Record:
    """An INVALID or UNSUPPORTED record of everything known so far: true at any moment of a run."""
    forecasts = known.forecasts or {}
    spec, offset = known.spec, time.time() - time.monotonic()
    return r.Record(
        outcome=r.Outcome.UNSUPPORTED if unsupported else r.Outcome.INVALID,
        reason=reason,
        interrupted=interrupted,
        started_at=known.started_at,
        backend=known.backend,
        versions=_versions(known.versions),
        settings=r.Settings(
            profile=spec.profile.name, hz=known.hz, **{node: dict(values) for node, values in known.settings.items()}
        ),
        sockets=r.Sockets(**{name: _socket(each) for name, each in forecasts.items()}),
        horizon_s=None if known.cut is None else time.monotonic() - known.cut.done_at,
        fault=r.FaultRecord(
            kind="blackhole",
            scope=spec.scope,
            direction=spec.direction,
            placement=spec.placement,
            cut_at=None if known.cut is None else known.cut.done_at + offset,
        ),
        flow=r.FlowRecord()
        if known.flow is None
        else r.FlowRecord(client=str(known.flow.client), server=str(known.flow.server)),
        uplink=_uplink(spec.uplink, None),
        prediction=r.Prediction(
            **{
                name: r.EndPrediction(
                    sending=branch_of(each.sending, 0.0),
                    idle=branch_of(each.idle, 0.0),
                    closing=None if each.closing is None else branch_of(each.closing, 0.0),
                )
                for name, each in forecasts.items()
            }
        ),
    )


def crossed_summary(passages: Iterable[Passage]) -> dict[str, int]:
    """Segments that came through the hole, and how many of them said that it was over."""
    crossed = [segment for passage in passages for segment in passage.crossed]
    return {
        "segments": len(crossed),
        "rst": sum(1 for s in crossed if s.flags & Flag.RST),
        "fin": sum(1 for s in crossed if s.flags & Flag.FIN),
    }


def write_timeline(
    timeline: TimelineWriter, found: Findings, classes: Mapping[str, Sequence[Classified]], since: float
) -> None:
    """Put the flow's segments and what the kernels told of its sockets on the timeline.

    Args:
        timeline: Open, anchored at the cut.
        found: For the sockets' samples.
        classes: Per vantage point, the flow's segments.
        since: Segments before this instant are left out, and all samples but the last, CLOCK_MONOTONIC.
    """
    for source, classified in classes.items():
        for c in classified:
            if c.segment.time_s >= since:
                timeline.add(_segment_observation(source, c))
    for end in found.ends:
        # The last one before says in which state the socket was until the first one after.
        before = [sample for sample in end.samples if sample.at < since][-1:]
        for sample in (*before, *(sample for sample in end.samples if sample.at >= since)):
            timeline.add(_sample_observation(end.name, sample))


def _sample_observation(end: str, sample: SocketSample) -> Observation:
    kept = ("expires_s", "backoff", "retransmits", "rto_s", "unacked", "total_retrans", "send_queue", "recv_queue")
    facts = {name: getattr(sample, name) for name in kept}
    detail = {"state": sample.state.name, "timer": sample.timer.name, "orphan": sample.inode == 0, **facts}
    return Observation(sample.at, end, "socket-sample", detail)


def _segment_observation(source: str, c: Classified) -> Observation:
    return Observation(
        c.segment.time_s,
        source,
        "segment",
        {
            "direction": c.direction.value,
            "class": c.segment_class.value,
            "seq": c.seq,
            "length": c.segment.length,
            "flags": int(c.segment.flags),
        },
    )


def _real_world(found: Findings) -> r.RealWorld:
    """The same sockets and programs under Linux's defaults."""

    def uncompressed(end: EndFinding) -> r.Branch:
        situation = end.forecast.situation(sends=end.sends)
        # To the millisecond, since it is a reference and each prediction of a quarter of an hour takes its time.
        real = real_world(replace(situation, srtt_s=round(situation.srtt_s, 3)))
        return branch_of(real, 0.0 if end.anchor is None else end.anchor - found.cut.done_at)

    settings = f"Linux defaults (tcp_retries2={LINUX_DEFAULTS.retries2}, rto_max {LINUX_DEFAULTS.rto_max_s:g} s)"
    return r.RealWorld(settings=settings, **{end.name: uncompressed(end) for end in found.ends})


def _socket(each: EndForecast) -> r.SocketFacts:
    options = None if each.options is None else asdict(each.options)
    if each.sample is None:
        return r.SocketFacts(options=options)
    return r.SocketFacts(
        srtt_s=each.sample.srtt_s, rttvar_s=each.sample.rttvar_s, rto_s=each.sample.rto_s, options=options
    )


def _versions(versions: Mapping[str, str]) -> r.Versions:
    main = {"lab", "kernel", "python"}
    rest = {name: value for name, value in versions.items() if name.lower() not in main}
    found = {name.lower(): value for name, value in versions.items()}
    return r.Versions(lab=found.get("lab"), kernel=found.get("kernel"), python=found.get("python"), libraries=rest)


def _check(check: CoreCheck) -> r.Check:
    # A note that fails decides nothing; in the record a failed check would contradict the outcome.
    return r.Check(name=check.name, ok=check.ok or check.kind is Kind.NOTE, detail=check.detail)
