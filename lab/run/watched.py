"""What a run knows when its watch is over."""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.core.fault import Fault
from lab.core.flow import FourTuple
from lab.run.forecast import EndForecast
from lab.run.spec import RunSpec
from lab.testbed.ports import Counters, CutReceipt, Process, Testbed


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that was watched to its end; the rest is read out of what it left behind."""

    spec: RunSpec
    testbed: Testbed
    flow: FourTuple
    fault: Fault
    cut: CutReceipt
    healed: CutReceipt | None
    until: float
    """When the watch ended, CLOCK_MONOTONIC."""

    forecasts: Mapping[str, EndForecast]
    before: Mapping[str, Counters]
    """Per node, before any program started."""

    translations: Mapping[FourTuple, FourTuple]
    """Before the cut, connections out by the uplink as the client has them and as the far end does."""

    programs: Mapping[str, Process | None]
    bystander: Process
    bystander_port: int
    reconnect: Process | None
    """A client that tried a new connection while the old one was dark."""
