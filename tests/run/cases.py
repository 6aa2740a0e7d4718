"""A run's findings, made up: a client that sends one line into the hole and gives up by the rule, an idle server."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lab.core.fault import Matched
from lab.core.flow import Direction, Endpoint, FourTuple
from lab.core.giveup import predict
from lab.core.hole import Passage
from lab.core.prediction import State
from lab.core.profiles import PROFILES
from lab.core.segment import Flag, Segment
from lab.core.segment_class import Classified, SegmentClass, Trigger
from lab.core.socket import SocketOptions
from lab.core.timeline import ClockPair
from lab.run.fate import KernelFate
from lab.run.findings import BystanderFinding, EndFinding, FarFinding, Findings
from lab.run.forecast import EndForecast, forecast
from lab.run.noticing import Noticing
from lab.run.traffic import Traffic
from lab.run.watched import Watched
from lab.testbed.ports import CaptureSummary, CutReceipt
from tests.run.fakes import CLIENT, FAULT, FLOW, SERVER, FakeProcess, nodes, sample, sysctls_of_linux

CUT = CutReceipt(began_at=100.0, done_at=100.0001)
SENT_AT = 100.05
WALL = 1_700_000_000.0

FAST_SYSCTLS = sysctls_of_linux() | {pin.sysctl: pin.values[0] for pin in PROFILES["fast"].pins}

COPIES_S = (0.206, 0.414, 0.842, 1.674, 2.698, 3.722, 4.746, 5.77)
DEATH_S = 6.794
"""By the rule: a probe, RTO doubled from 204 ms to the ceiling of 1 s, each wait rounded up by the wheel, and the first
expiry past 5.4 s from the first time-out."""


def made_forecast(options: SocketOptions | None = None, **changes: Any) -> EndForecast:
    """Both branches of an end with the fast profile."""
    arguments: dict[str, Any] = {"hz": 250, "writes_on": False, **changes}
    return forecast(State.ESTABLISHED, sample(at=99.9), options, FAST_SYSCTLS, **arguments)


def segment(at: float, flags: int = Flag.ACK, length: int = 0, *, back: bool = False, seq: int = 1) -> Segment:
    source, destination = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    return Segment(at, source, destination, seq, 1, flags, 500, length)


def copy_at(at: float, kind: SegmentClass = SegmentClass.TIMEOUT_COPY) -> Classified:
    trigger = Trigger.PROBE if kind is SegmentClass.TAIL_LOSS_PROBE else Trigger.TIMEOUT
    return Classified(segment(at, length=7), Direction.FORWARD, kind, 1, trigger, 0)


def copies(times_s: tuple[float, ...] = COPIES_S) -> tuple[Classified, ...]:
    """Copies at these seconds from the send, the first one a tail-loss probe."""
    kinds = [SegmentClass.TAIL_LOSS_PROBE, *[SegmentClass.TIMEOUT_COPY] * len(times_s)]
    return tuple(copy_at(SENT_AT + at, kind) for at, kind in zip(times_s, kinds, strict=False))


def quiet(**changes: Any) -> Traffic:
    """Of an end that had nothing to send."""
    plain = Traffic(
        lost_at=None, heard_at=99.4, copies=(), reset_at=None, ended_at=None, told_at=None, recovered_at=None
    )
    return replace(plain, **changes)


def nothing() -> KernelFate:
    return KernelFate(gone_at=None, within_s=0.0, cause=None, closed_at=None)


def gave_up(at: float = SENT_AT + DEATH_S, cause: str = "retries2", within_s: float = 0.004) -> KernelFate:
    return KernelFate(gone_at=at, within_s=within_s, cause=cause, closed_at=None)


def made_client(**changes: Any) -> EndFinding:
    plain = EndFinding(
        name="client",
        direction=Direction.FORWARD,
        forecast=made_forecast(),
        traffic=quiet(lost_at=SENT_AT, copies=copies()),
        fate=gave_up(),
        noticing=Noticing(SENT_AT + DEATH_S, "error", "ETIMEDOUT"),
        program_error_at=SENT_AT + DEATH_S,
        killed=False,
        counted={"retransmissions": 8, "keepalive-probes": 0, "window-probes": 0},
        counters={"retransmissions": 8, "keepalive-probes": 0, "window-probes": 0},
        late_s=0.0,
        samples=(),
        seen_until=SENT_AT + DEATH_S,
    )
    return replace(plain, **changes)


def made_server(**changes: Any) -> EndFinding:
    zero = {"retransmissions": 0, "keepalive-probes": 0, "window-probes": 0}
    return replace(
        made_client(),
        **{
            "name": "server",
            "direction": Direction.RETURN,
            "traffic": quiet(),
            "fate": nothing(),
            "noticing": Noticing(None, None, None),
            "program_error_at": None,
            "counted": zero,
            "counters": zero,
            "seen_until": 107.1,
            **changes,
        },
    )


def made_passage(direction: Direction, missing: int, **changes: Any) -> Passage:
    lost = tuple(segment(SENT_AT + number / 100, back=direction is Direction.RETURN) for number in range(missing))
    return replace(Passage(direction, missing + 6, 6, lost, (), ()), **changes)


def summary(**changes: Any) -> CaptureSummary:
    plain = CaptureSummary(
        files={"left": Path("left.pcapng"), "right": Path("right.pcapng")},
        packets={"left": 30, "right": 20},
        dropped={"left": 0, "right": 0},
        started_at=98.5,
        stopped_at=107.3,
        clocks=(ClockPair(WALL, 98.5), ClockPair(WALL + 8.8, 107.3)),
    )
    return replace(plain, **changes)


def made_findings(**changes: Any) -> Findings:
    plain = Findings(
        client=made_client(),
        server=made_server(),
        far=None,
        passages=(made_passage(Direction.FORWARD, 10), made_passage(Direction.RETURN, 1)),
        matched=Matched(forward=10, return_=1),
        icmp=0,
        bystander=BystanderFinding(alive=True, lost=0, longest_gap_s=0.21),
        capture=summary(),
        cut=CUT,
        healed=None,
        ended_early=0,
        watched_until=107.2,
        counters={"client": {"TcpRetransSegs": 8}, "router": {}, "server": {}},
        reconnected=None,
    )
    return replace(plain, **changes)


def watched(bystander: FakeProcess | None = None, **changes: Any) -> Watched:
    """A run that was watched from the cut to 103 s on the monotonic clock."""
    fields: dict[str, Any] = {
        "spec": cast("Any", type("Spec", (), {"closes": False, "uplink": None})),
        "testbed": nodes()[1],
        "flow": FLOW,
        "fault": FAULT,
        "cut": CUT,
        "healed": None,
        "until": 103.0,
        "forecasts": {},
        "before": {},
        "translations": {},
        "programs": {},
        "bystander": bystander or FakeProcess(),
        "bystander_port": 40007,
        "reconnect": None,
        **changes,
    }
    return Watched(**fields)


TRANSLATED = FourTuple(Endpoint("203.0.113.1", CLIENT.port), SERVER)
"""The flow as the far side of an uplink has it."""


def made_far(**changes: Any) -> FarFinding:
    """An outside server that sent one line into the hole, and one copy of it."""
    lost = SENT_AT + 0.2
    plain = FarFinding(
        translated=TRANSLATED,
        steady=True,
        passed={Direction.FORWARD: 12, Direction.RETURN: 11},
        traffic=quiet(lost_at=lost, copies=(copy_at(lost + 0.4),)),
    )
    return replace(plain, **changes)


def made_outside(**changes: Any) -> Findings:
    """A run whose server is outside."""
    return made_findings(**{"server": None, "far": made_far(), "counters": {"client": {}, "router": {}}, **changes})


def window_of(end: EndFinding) -> tuple[float, float]:
    """The predicted give-up, CLOCK_MONOTONIC."""
    assert end.window is not None
    return end.window


assert predict(made_forecast().sending_situation).cause.value == "retries2"
BYSTANDER = Endpoint(SERVER.address, 40007)
