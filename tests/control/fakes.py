"""A router that answers at once, and remembers what it was asked."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.core.errors import InvalidRun, UsageError
from lab.core.fault import Fault, Matched
from lab.core.flow import Endpoint, FourTuple
from lab.core.timeline import ClockPair
from lab.testbed.ports import CaptureFile, CaptureSummary, Counters, CutReceipt, PassingFlow, TrackState

CLIENT = Endpoint("192.0.2.10", 40000)
SERVER = Endpoint("198.51.100.20", 5000)
FLOW = FourTuple(CLIENT, SERVER)
OTHER = FourTuple(Endpoint("192.0.2.10", 40001), SERVER)
FLOW6 = FourTuple(Endpoint("2001:db8:1::10", 40000), Endpoint("2001:db8:2::20", 5000))


def passing(
    flow: FourTuple = FLOW, *, since: float | None = 100.0, state: TrackState = TrackState.ESTABLISHED
) -> PassingFlow:
    """A flow that has talked."""
    return PassingFlow(flow=flow, state=state, assured=True, packets=(3, 2), octets=(180, 120), since=since)


class FakeRouter:
    """Fulfils ``ControlledRouter``."""

    def __init__(self, *flows: PassingFlow) -> None:
        self.passing: list[PassingFlow] = list(flows or [passing()])
        self.asked: list[str] = []
        self.cut_now: set[Fault] = set()
        self.drops: dict[Fault, Matched] = {}
        self.broken = False
        """Whether every call about a fault fails from now on."""

        self.folder: Path | None = None
        self._lock = threading.Lock()

    @property
    def firewall(self) -> str:
        return "fake"

    def prepare(self, fault: Fault) -> None:
        self.drops.setdefault(fault, Matched(0, 0))

    def cut(self, fault: Fault) -> CutReceipt:
        with self._lock:
            self._note("cut", fault)
            assert fault not in self.cut_now, "cut twice"
            self.cut_now.add(fault)
            self.drops.setdefault(fault, Matched(0, 0))
            now = time.monotonic()
            return CutReceipt(now, now)

    def heal(self, fault: Fault) -> CutReceipt:
        with self._lock:
            self._note("heal", fault)
            self.cut_now.remove(fault)
            now = time.monotonic()
            return CutReceipt(now, now)

    def matched(self, fault: Fault) -> Matched:
        if self.broken:
            raise InvalidRun("The router is gone.")
        return self.drops[fault]

    def forget(self, fault: Fault) -> None:
        with self._lock:
            assert fault not in self.cut_now, "forgotten while it is in force"
            self.drops.pop(fault, None)
            self.asked.append(f"forget {fault.flow.client.port}")

    def drop(self, fault: Fault, forward: int, return_: int) -> None:
        """Count so many packets more."""
        before = self.drops[fault]
        self.drops[fault] = Matched(before.forward + forward, before.return_ + return_)

    def flows(self) -> Sequence[PassingFlow]:
        return list(self.passing)

    def counters(self) -> Counters:
        return {"IpForwDatagrams": 7}

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        assert (filter_expression, ring_bytes) == (None, 0)
        assert limit_bytes > 0, "a capture without a bound fills the disk in the end"
        self.folder = folder
        for side in ("left", "right"):
            (folder / f"{side}.pcapng").write_bytes(b"")

    def flush_capture(self) -> CaptureSummary:
        if self.folder is None:
            raise UsageError("not started")
        pair = ClockPair(wall=time.time(), monotonic=time.monotonic())
        left, right = self.folder / "left.pcapng", self.folder / "right.pcapng"
        return CaptureSummary(
            files={path.stem: path for path in (left, right)},
            packets={"left": 5, "right": 4},
            dropped={"left": 0, "right": 0},
            started_at=0.0,
            stopped_at=pair.monotonic,
            clocks=(pair, pair),
            pieces={path.stem: (CaptureFile(path, path.stat().st_size, 0.0),) for path in (left, right)},
        )

    def stop_capture(self) -> CaptureSummary:
        return self.flush_capture()

    def _note(self, what: str, fault: Fault) -> None:
        if self.broken:
            raise InvalidRun("The router is gone.")
        self.asked.append(f"{what} {fault.flow.client.port}")


def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)
