"""Records and timelines of runs that went as in the reference measurements, made by hand."""

from collections.abc import Sequence

from lab.core.fault import Cut, Scope
from lab.core.flow import Direction
from lab.core.timeline import Observation
from lab.report.record import (
    Activity,
    Branch,
    Bystander,
    Cause,
    Check,
    Crossed,
    EndObservation,
    EndPrediction,
    FaultRecord,
    FlowRecord,
    MatchedPackets,
    NoticedBy,
    Observed,
    Outcome,
    Prediction,
    RealWorld,
    Record,
    Settings,
    SocketFacts,
    Sockets,
    UplinkRecord,
    Versions,
)

CUT_AT = 1_700_000_000.5
ANCHOR = 5000.0
"""CLOCK_MONOTONIC of the cut in every timeline here."""

SYSCTLS = {"net.ipv4.tcp_retries2": "15", "net.ipv4.tcp_rto_max_ms": "1000"}
SETTINGS = Settings(profile="fast", client=SYSCTLS, router={}, server=SYSCTLS, hz=250)
FLOW = FlowRecord(client="192.0.2.2:40112", server="198.51.100.2:7000")
VERSIONS = Versions(
    lab="0.1.0", kernel="6.18.0", python="3.11.2", libraries={"scapy": "2.6.1"}, tools={"iptables": "1.8.9"}
)
CHECKS = (
    Check(name="rules-matched", ok=True, detail="17 forward, 17 return"),
    Check(name="bystander", ok=True, detail="alive, 0 lost"),
    Check(name="nothing-crossed", ok=True, detail="0 segments, 0 RST, 0 FIN, 0 ICMP"),
    Check(name="captures-complete", ok=True, detail="0 dropped"),
)
NEVER = Branch(cause=Cause.NONE, copies=(0, 0))
UNHARMED = Bystander(alive=True, lost=0)
NOTHING = Crossed(segments=0, rst=0, fin=0, icmp=0)
SOCKET = SocketFacts(
    srtt_s=0.00006, rttvar_s=0.00003, rto_s=0.204, options={"user_timeout_s": None, "keepalive": False}
)


def busy_copies(origin: float) -> tuple[float, ...]:
    """A probe and 16 timeout copies with rto_max 1 s, as measured."""
    steps = [0.207, 0.208, 0.416, 0.832, *[1.02] * 12]
    times = [origin]
    for step in steps:
        times.append(times[-1] + step)
    return tuple(round(t, 6) for t in times[1:])


def sending(origin: float) -> Branch:
    windows = tuple((round(t - 0.004, 6), round(t + 0.02 * (index + 1), 6)) for index, t in enumerate(busy_copies(0.0)))
    return Branch(
        cause=Cause.RETRIES2, window_s=(14.61, 15.24), copies=(16, 16), bound_s=14.4, copy_windows_s=windows
    ).counted_from(origin)


def both_ways() -> tuple[Record, list[Observation]]:
    """Both ends send into the hole, both kernels give up."""
    client, server = 0.031, 0.284
    record = Record(
        outcome=Outcome.CONFIRMED,
        started_at=CUT_AT - 2.5,
        horizon_s=16.2,
        backend="netns",
        versions=VERSIONS,
        settings=SETTINGS,
        sockets=Sockets(client=SOCKET, server=SOCKET),
        fault=_fault(Cut.BOTH, 17, 17),
        flow=FLOW,
        prediction=Prediction(
            client=EndPrediction(applied=Activity.SENDING, sending=sending(client), idle=NEVER),
            server=EndPrediction(applied=Activity.SENDING, sending=sending(server), idle=NEVER),
        ),
        observation=Observed(
            client=_died(client, noticed_by=NoticedBy.ERROR),
            server=_died(server, noticed_by=NoticedBy.OUTPUT),
            bystander=UNHARMED,
            crossed=NOTHING,
        ),
        real_world=RealWorld(
            settings="Linux defaults: tcp_retries2 15, rto_max 120 s",
            client=Branch(cause=Cause.RETRIES2, window_s=(924.7, 946.5), copies=(16, 16)),
            server=Branch(cause=Cause.RETRIES2, window_s=(924.7, 946.5), copies=(16, 16)),
        ),
        counters={"client": {"TcpRetransSegs": 16, "TcpExtTCPAbortOnTimeout": 1}, "server": {"TcpRetransSegs": 16}},
        checks=CHECKS,
        artefacts=("client.log", "left.pcapng", "record.json", "right.pcapng", "server.log", "timeline.jsonl"),
    )
    talk = [_segment(t, Direction.FORWARD, "first") for t in (-2.0, -1.0, -0.02)]
    copies = [
        _segment(t, direction, "tail-loss-probe" if index == 0 else "timeout-copy")
        for direction, origin in ((Direction.FORWARD, client), (Direction.RETURN, server))
        for index, t in enumerate(busy_copies(origin))
    ]
    firsts = [_segment(client, Direction.FORWARD, "first"), _segment(server, Direction.RETURN, "first")]
    return record, [*talk, *firsts, *copies, _event(0.0, "cut")]


def return_only() -> tuple[Record, list[Observation]]:
    """The server has the request and is never told that its client is gone."""
    client = 0.031
    record = Record(
        outcome=Outcome.CONFIRMED,
        horizon_s=20.0,
        backend="netns",
        versions=VERSIONS,
        settings=SETTINGS,
        fault=_fault(Cut.RETURN, 0, 17),
        flow=FlowRecord(client="[2001:db8:1::2]:40112", server="[2001:db8:2::2]:7000"),
        prediction=Prediction(
            client=EndPrediction(applied=Activity.SENDING, sending=sending(client), idle=NEVER),
            server=EndPrediction(applied=Activity.IDLE, sending=sending(client), idle=NEVER),
        ),
        observation=Observed(
            client=_died(client, noticed_by=NoticedBy.EXIT),
            server=EndObservation(copies=0, never_told=True),
            bystander=UNHARMED,
            crossed=NOTHING,
        ),
        checks=CHECKS,
    )
    return record, [_event(0.0, "cut")]


def idle_for_ever() -> tuple[Record, list[Observation]]:
    """Nobody sends, nobody learns anything: confirmed up to the horizon only."""
    quiet = EndObservation(copies=0, never_told=True)
    unaware = EndPrediction(applied=Activity.IDLE, sending=sending(0.0), idle=NEVER)
    record = Record(
        outcome=Outcome.CONFIRMED,
        horizon_s=30.0,
        backend="docker",
        versions=VERSIONS,
        settings=SETTINGS,
        fault=_fault(Cut.BOTH, 0, 0),
        flow=FLOW,
        prediction=Prediction(client=unaware, server=unaware),
        observation=Observed(client=quiet, server=quiet, bystander=UNHARMED, crossed=NOTHING),
        checks=(*CHECKS, Check(name="horizon", ok=True, detail="watched 30.000 s, the windows never close")),
    )
    return record, [_event(0.0, "cut")]


def keepalive() -> tuple[Record, list[Observation]]:
    """An idle client with keepalive 10/5/3 scaled down to 4/2/3, the server without."""
    branch = Branch(cause=Cause.KEEPALIVE, window_s=(9.3, 10.3), copies=(3, 3))
    record = Record(
        outcome=Outcome.REFUTED,
        reason="client: gave up at 8.950 s, predicted 9.300 to 10.300 s",
        horizon_s=12.0,
        backend="netns",
        fault=_fault(Cut.BOTH, 4, 0),
        flow=FLOW,
        prediction=Prediction(
            client=EndPrediction(applied=Activity.IDLE, sending=sending(0.0), idle=branch),
            server=EndPrediction(applied=Activity.IDLE, sending=sending(0.0), idle=NEVER),
        ),
        observation=Observed(
            client=EndObservation(
                copies=3,
                gave_up_s=8.95,
                cause=Cause.KEEPALIVE,
                errno="ETIMEDOUT",
                noticed_s=8.951,
                noticed_by=NoticedBy.CLOSE,
            ),
            server=EndObservation(copies=0, never_told=True),
            bystander=UNHARMED,
            crossed=NOTHING,
        ),
        checks=CHECKS,
    )
    probes = [_segment(t, Direction.FORWARD, "keepalive-probe") for t in (3.2, 5.25, 7.3)]
    return record, [*probes, _event(0.0, "cut")]


def healed() -> tuple[Record, list[Observation]]:
    """Healed before the give-up: delivery at the next copy."""
    first = 0.031
    until = busy_copies(first)[:5]
    record = Record(
        outcome=Outcome.CONFIRMED,
        horizon_s=6.0,
        backend="netns",
        fault=_fault(Cut.BOTH, 5, 0).model_copy(update={"healed_at": CUT_AT + 2.0}),
        flow=FLOW,
        prediction=Prediction(
            client=EndPrediction(applied=Activity.SENDING, sending=sending(first), idle=NEVER),
            server=EndPrediction(applied=Activity.IDLE, idle=NEVER),
        ),
        observation=Observed(
            client=EndObservation(
                first_lost_s=first, copies=5, copy_times_s=until, last_copy_s=until[-1], recovered_s=until[-1] + 0.0001
            ),
            server=EndObservation(copies=0, never_told=True),
            bystander=UNHARMED,
            crossed=NOTHING,
        ),
        checks=CHECKS,
    )
    return record, [_segment(t, Direction.FORWARD, "first") for t in (3.0, 4.0, 5.0)]


def interrupted() -> tuple[Record, list[Observation]]:
    """Ctrl-C before anything was known."""
    record = Record(outcome=Outcome.INVALID, reason="interrupted before the cut", interrupted=True, backend="netns")
    return record, []


def outside() -> tuple[Record, list[Observation]]:
    """The server is outside: what it sent is known, and nothing else of it."""
    client, server = 0.031, 0.284
    sent = busy_copies(server)[:9]
    record = Record(
        outcome=Outcome.CONFIRMED,
        horizon_s=16.2,
        backend="docker",
        versions=VERSIONS,
        settings=SETTINGS.model_copy(update={"server": {}}),
        fault=_fault(Cut.BOTH, 18, 10),
        flow=FlowRecord(client="192.0.2.2:40112", server="203.0.113.9:443"),
        uplink=UplinkRecord(
            host="staging.example.com", port=443, address="203.0.113.9", translated="198.51.100.7:40112"
        ),
        prediction=Prediction(
            client=EndPrediction(applied=Activity.SENDING, sending=sending(client), idle=NEVER),
        ),
        observation=Observed(
            client=_died(client, noticed_by=NoticedBy.ERROR),
            server=EndObservation(
                first_lost_s=server, copies=len(sent), copy_times_s=sent, last_copy_s=sent[-1], cause=None
            ),
            bystander=UNHARMED,
            crossed=NOTHING,
        ),
        checks=CHECKS,
    )
    return record, [_segment(t, Direction.RETURN, "timeout-copy") for t in sent]


CASES = {
    "both-ways": both_ways,
    "return-only": return_only,
    "idle-for-ever": idle_for_ever,
    "keepalive": keepalive,
    "healed": healed,
    "interrupted": interrupted,
    "outside": outside,
}


def _died(first: float, *, noticed_by: NoticedBy) -> EndObservation:
    times = busy_copies(first)
    died = round(times[-1] + 1.02, 6)
    return EndObservation(
        first_lost_s=first,
        copies=len(times),
        copy_times_s=times,
        last_copy_s=times[-1],
        gave_up_s=died,
        gave_up_within_s=0.002,
        cause=Cause.RETRIES2,
        errno="ETIMEDOUT",
        noticed_s=round(died + 0.0004, 6),
        noticed_by=noticed_by,
        never_told=False,
    )


def _fault(direction: Cut, forward: int, back: int) -> FaultRecord:
    matched = MatchedPackets(forward=forward, return_=back)
    return FaultRecord(kind="blackhole", scope=Scope.FLOW, direction=direction, cut_at=CUT_AT, matched=matched)


def _segment(t: float, direction: Direction, kind: str) -> Observation:
    source = "router-left" if direction is Direction.FORWARD else "router-right"
    return Observation(ANCHOR + t, source, "segment", {"direction": direction.value, "class": kind, "length": 64})


def _event(t: float, kind: str) -> Observation:
    return Observation(ANCHOR + t, "router", kind)


def by_time(observations: Sequence[Observation]) -> list[Observation]:
    return sorted(observations, key=lambda observation: observation.at)
