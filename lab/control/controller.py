"""Cuts, heals, and tells what it did; knows nothing of HTTP.

One thread of its own does what is due: heals that were asked for after a time, the dead-man switch, and a look at flows
and rules a few times a second, for the events. Every public method may be called from any thread. What changes a fault
happens under one lock, so that two clients that cut or heal at once see one order of things. Records that are given
away are copies.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from lab.control.events import EventLog
from lab.control.faults import FaultBook, FaultRecord
from lab.control.heartbeat import Heartbeat
from lab.control.recording import Recording
from lab.control.refusals import Closing, OtherFaultInForce, UnknownFault, as_json
from lab.control.roll import Roll, Selector
from lab.control.router import ControlledRouter
from lab.core.errors import LabError
from lab.core.fault import Cut, Fault, Matched, Scope
from lab.core.flow import Endpoint, FourTuple
from lab.core.timeline import ClockPair
from lab.testbed.ports import PassingFlow

LOOK_S = 0.25
"""Between two looks at flows and rules: how late an event about them may be."""

TIDIED_A_LOOK = 4
"""Faults whose rules are removed at one look, a millisecond each; more than that are hardly cut in its time."""

CALM_S = 1.0
"""For how long before a cut the captures must be complete, as in a run."""

CAPTURE_BYTES = 64 * 1024 * 1024
"""Per side on disk, where nobody says otherwise."""

_JOIN_TIMEOUT_S = 1.0

_PROBES = (
    FourTuple(Endpoint("192.0.2.254", 1), Endpoint("198.51.100.254", 1)),
    FourTuple(Endpoint("2001:db8:1::fffe", 1), Endpoint("2001:db8:2::fffe", 1)),
)
"""Flows that nobody has: their rules are built once and never put in force, so that the first cut loads nothing."""


class Controller:
    """The faults of one router; a context manager that heals everything at its end.

    Args:
        router: Its owner closes it, after the controller.
        folder: For the captures; exists and is writable.
        heartbeat_s: Dead-man switch: how long the owner may be silent; None for none.
        capture_bytes: Per side on disk.
        tell: Called with a line about each event that a person may want to read.
    """

    def __init__(
        self,
        router: ControlledRouter,
        folder: Path,
        *,
        heartbeat_s: float | None = None,
        capture_bytes: int = CAPTURE_BYTES,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.router = router
        self.events = EventLog()
        self.heartbeat = Heartbeat(heartbeat_s)
        self.started_at = time.time()
        self.recording = Recording(
            router, folder, capture_bytes, lambda kind, reason: self._publish(kind, reason=reason)
        )
        self._tell = tell
        self._book = FaultBook()
        self._roll = Roll()
        self._counts = {"cuts": 0, "heals": 0, "lost": 0}
        self._trouble: str | None = None
        self._forsaken: set[str] = set()
        """Faults whose owner fell silent: each is healed as soon as the router does it."""

        self._wake = threading.Condition(threading.RLock())
        self._looking = threading.Lock()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._run, name="lab-control", daemon=True),
            threading.Thread(target=self.recording.run, name="lab-control-capture", daemon=True),
        ]

    def __enter__(self) -> Self:
        """Ready to cut; the capture may still be starting."""
        for flow in _PROBES:
            # A kernel without IPv6 says so when somebody cuts such a flow.
            with contextlib.suppress(LabError):
                self.router.prepare(Fault(flow))
        self._look(silent=True)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Heal everything and end; the router stays."""
        self.close()

    def close(self) -> None:
        """Take no more orders, heal everything, end the events; idempotent."""
        with self._wake:
            if self._closing:
                return
            self._closing = True
            self.recording.end()
            self._wake.notify_all()
            try:
                self._heal_each(self._book.in_force, "shutdown")
            except Exception as error:  # noqa: BLE001 - whatever it is, the rest has to be closed
                self._fail(error)
            self._publish("closing")
        self.events.close()
        for thread in self._threads:
            thread.join(_JOIN_TIMEOUT_S)
        self.recording.stop()

    def flows(self) -> Sequence[tuple[PassingFlow, str | None]]:
        """The open flows that pass, oldest first, each with the fault that keeps it dark."""
        self._look()
        with self._wake:
            dark = {record.fault.flow: record.name for record in self._book.in_force}
            return [(one, dark.get(one.flow)) for one in self._roll.flows]

    def cut(
        self,
        flow: FourTuple | Selector,
        *,
        direction: Cut = Cut.BOTH,
        scope: Scope = Scope.FLOW,
        heal_after_s: float | None = None,
        must_exist: bool = True,
    ) -> tuple[FaultRecord, bool]:
        """Put a fault in force.

        Args:
            flow: The flow, or what it is chosen by.
            direction: Which of its ways.
            scope: It alone, or all between its two hosts.
            heal_after_s: Seconds until it is healed by itself; None for never.
            must_exist: Refuse a flow that does not pass.

        Returns:
            The fault, and whether it is new; the same one that is in force already is not.

        Raises:
            Refusal: no such flow, several, one that is cut in another way, or the controller is ending.
            LabError: the router could not.
        """
        known = flow if isinstance(flow, FourTuple) else None
        if known is None or (must_exist and self._in_force(known) is None):
            self._look()
        with self._wake:
            if self._closing:
                raise Closing
            chosen = self._roll.choose(flow) if isinstance(flow, Selector) else flow
            fault = Fault(chosen, direction, scope)
            if (current := self._in_force(chosen)) is not None:
                if (current.fault, current.heal_after_s) != (fault, heal_after_s):
                    raise OtherFaultInForce(chosen, current.name)
                return copy(current), False
            if must_exist:
                self._roll.require(chosen)
            receipt = self.router.cut(fault)
            lost = self.recording.lost_up_to(receipt.began_at - CALM_S)
            record = FaultRecord(fault, heal_after_s, receipt, _clock(), self._book.total(fault), lost)
            self._book.add(record)
            self._counts["cuts"] += 1
            self._wake.notify_all()
            self._publish("cut", record, direction=direction.value, scope=scope.value)
            return copy(record), True

    def heal(self, name: str, by: str = "request") -> FaultRecord:
        """Take a fault back; idempotent.

        Raises:
            UnknownFault: no such id.
            LabError: the router could not.
        """
        with self._wake:
            record = self._record(name)
            if record.in_force:
                record.healed, record.healed_by = self.router.heal(record.fault), by
                self._counts["heals"] += 1
                self._book.close(record, self.router.matched(record.fault))
                after_s = record.healed.done_at - record.cut.done_at
                self._publish("healed", record, by=by, after_s=after_s, matched=_matched(record))
            return copy(record)

    def heal_all(self) -> Sequence[FaultRecord]:
        """Take back all that is in force; those that were.

        Raises:
            LabError: the router could not take one back; the others are healed.
        """
        with self._wake:
            return self._heal_each(self._book.in_force, "request")

    def fault(self, name: str) -> FaultRecord:
        """A fault, its rules read just now where it is in force.

        Raises:
            UnknownFault: no such id.
        """
        with self._wake:
            record = self._record(name)
            self._read(record)
            return copy(record)

    def faults(self) -> Sequence[FaultRecord]:
        """All that are remembered, oldest first."""
        with self._wake:
            for record in self._book.in_force:
                self._read(record)
            return [copy(record) for record in self._book]

    def matched_total(self) -> Matched:
        """Packets that all faults have dropped, forgotten ones included."""
        with self._wake:
            for record in self._book.in_force:
                self._read(record)
            return self._book.dropped

    def dark_before(self, record: FaultRecord) -> float:
        """When the last fault of the same flow before this one was healed, CLOCK_MONOTONIC; minus infinity for none."""
        with self._wake:
            healed = [one.healed.done_at for one in self._book if one.healed and one.fault.flow == record.fault.flow]
            return max((at for at in healed if at <= record.cut.began_at), default=float("-inf"))

    def beat(self) -> Heartbeat:
        """The owner lives."""
        with self._wake:
            if self._closing:
                raise Closing
            self.heartbeat.beat(time.monotonic())
            self._wake.notify_all()
            return self.heartbeat

    @property
    def health(self) -> Mapping[str, Any]:
        """How it goes, without asking the router; JSON values."""
        beat = self.heartbeat
        return {
            "status": "ending" if self._closing else "ok" if self._trouble is None else "failing",
            "reason": self._trouble,
            "capture": self.recording.state,
            "heartbeat": beat.pulse.value,
            "heartbeat_s": beat.within_s,
            "in_force": len(self._book.in_force),
        }

    @property
    def counts(self) -> Mapping[str, int]:
        """So far: cuts, heals, and owners that fell silent (lost)."""
        return dict(self._counts)

    def _record(self, name: str) -> FaultRecord:
        record = self._book.get(name)
        if record is None:
            raise UnknownFault(name)
        return record

    def _in_force(self, flow: FourTuple) -> FaultRecord | None:
        return next((record for record in self._book.in_force if record.fault.flow == flow), None)

    def _read(self, record: FaultRecord) -> None:
        """Read a fault's rules; tell where they have matched since the last reading."""
        if record.in_force and record.read(self.router.matched(record.fault)):
            self._publish("matched", record, matched=_matched(record))

    def _look(self, *, silent: bool = False) -> None:
        # Two looks at once could be taken in the wrong order.
        with self._looking:
            listed = self.router.flows()
            self._take(listed, silent=silent)

    def _look_at_rules(self) -> None:
        """Read what is in force, one fault at a time: a cut need not wait for all of them."""
        for record in self._book.in_force:
            with self._wake:
                self._read(record)

    def _take(self, listed: Sequence[PassingFlow], *, silent: bool) -> None:
        with self._wake:
            appeared, ended = self._roll.look(listed)
            for kind, flows in (("flow-appeared", appeared), ("flow-ended", ended)):
                for one in flows if not silent else ():
                    self._publish(kind, flow=as_json(one.flow))

    def _heal_each(self, records: Sequence[FaultRecord], by: str) -> Sequence[FaultRecord]:
        """Heal whatever can be healed, then raise what kept the first one that could not."""
        healed, failures = [], []
        for record in records:
            try:
                healed.append(self.heal(record.name, by))
            except Exception as error:  # noqa: BLE001 - whatever it is, one flow must not keep the others dark
                failures.append(error)
        if failures:
            raise failures[0]
        return healed

    def _run(self) -> None:
        look_at = time.monotonic() + LOOK_S
        while not self._closing:
            with self._wake:
                self._wake.wait(max(0.0, self._due_at(look_at) - time.monotonic()))
            now = time.monotonic()
            try:
                self._do_due(now)
                if now >= look_at:
                    look_at = now + LOOK_S
                    self._look()
                    self._look_at_rules()
                    self._tidy()
                    self._trouble = None
            except Exception as error:  # noqa: BLE001 - without this thread nothing would heal by itself any more
                self._fail(error)
                with self._wake:
                    self._wake.wait(LOOK_S)

    def _tidy(self) -> None:
        """Remove rules that nobody needs any more, a few a look: a cut must not wait for many."""
        with self._wake:
            for fault in self._book.surplus[:TIDIED_A_LOOK]:
                self.router.forget(fault)
                self._book.forget(fault)

    def _due_at(self, look_at: float) -> float:
        dues = [record.heal_at for record in self._book.in_force]
        return min(look_at, *(due for due in [*dues, self.heartbeat.due_at] if due is not None), float("inf"))

    def _do_due(self, now: float) -> None:
        with self._wake:
            if self._closing:
                return
            if self.heartbeat.check(now):
                self._counts["lost"] += 1
                self._publish("heartbeat-lost", silent_s=self.heartbeat.within_s)
                self._forsaken = {record.name for record in self._book.in_force}
            in_force = self._book.in_force
            try:
                self._heal_each([one for one in in_force if one.name in self._forsaken], "heartbeat")
            finally:
                due = [one for one in in_force if one.heal_at is not None and one.heal_at <= now]
                self._heal_each(due, "timer")

    def _fail(self, error: Exception) -> None:
        if self._trouble is None:
            self._publish("trouble", reason=str(error))
        self._trouble = str(error)

    def _publish(self, kind: str, record: FaultRecord | None = None, **detail: Any) -> None:
        if record is not None:
            detail = {"fault": record.name, "flow": as_json(record.fault.flow), **detail}
        self.events.publish(time.time(), kind, detail)
        if kind not in ("matched", "flow-appeared", "flow-ended"):
            words = [f"{key}={value}" for key, value in detail.items() if key != "flow" and value is not None]
            self._tell(" ".join([kind, *([str(record.fault.flow)] if record else []), *words]))


def _matched(record: FaultRecord) -> dict[str, int]:
    return {"forward": record.matched.forward, "return": record.matched.return_}


def _clock() -> ClockPair:
    before, wall, after = time.monotonic(), time.time(), time.monotonic()
    return ClockPair(wall=wall, monotonic=(before + after) / 2)
