"""The controller within this process, over a testbed's router."""

import time
from collections.abc import Sequence
from pathlib import Path

from lab.control.controller import Controller
from lab.control.faults import FaultRecord
from lab.control.verdict import verdict_on
from lab.core.errors import InvalidRun
from lab.core.fault import Cut, Scope
from lab.core.flow import FourTuple
from lab.testbed.ports import PassingFlow
from lab.testcontainers.answers import FaultState, Verdict

_CAPTURE_TIMEOUT_S = 30.0
_POLL_S = 0.01


class ControlHere:
    """Fulfils ``Control``.

    Args:
        controller: Entered.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    def flows(self) -> Sequence[PassingFlow]:
        """The open flows, oldest first."""
        return [one for one, _ in self.controller.flows()]

    def light(self) -> Sequence[PassingFlow]:
        """The open flows that are not cut, oldest first."""
        return [one for one, fault in self.controller.flows() if fault is None]

    def cut(self, flow: FourTuple, direction: Cut, scope: Scope, heal_after_s: float | None) -> FaultState:
        """Put a fault in force."""
        record, _ = self.controller.cut(flow, direction=direction, scope=scope, heal_after_s=heal_after_s)
        return _state(record)

    def fault(self, name: str) -> FaultState:
        """A fault as it is now."""
        return _state(self.controller.fault(name))

    def heal(self, name: str) -> FaultState:
        """Take it back."""
        return _state(self.controller.heal(name))

    def heal_all(self) -> Sequence[FaultState]:
        """Take back all."""
        return [_state(record) for record in self.controller.heal_all()]

    def verdict(self, name: str) -> Verdict:
        """What the router proves of it."""
        from lab.control.models import VerdictView

        view = VerdictView.of(verdict_on(self.controller, name), time.monotonic())
        return Verdict.of(view.model_dump(mode="json", by_alias=True))

    def capture(self, side: str) -> bytes:
        """What was captured on one side until now."""
        # pcapng files may be joined: two where the size is bounded.
        pieces = self.controller.recording.summary().pieces[side]
        return b"".join(_head(one.path, one.octets) for one in pieces)

    def cut_at(self, name: str) -> float:
        """When a fault was in force, CLOCK_MONOTONIC."""
        return self.controller.fault(name).cut.done_at

    def await_capture(self) -> None:
        """Return once packets are being caught.

        Raises:
            InvalidRun: the capture failed, or did not come up.
        """
        deadline = time.monotonic() + _CAPTURE_TIMEOUT_S
        while (state := self.controller.health["capture"]) == "starting" and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if state != "running":
            said = [
                event.detail["reason"] for event in self.controller.events.after(0) if event.kind == "capture-failed"
            ]
            raise InvalidRun(f"The router's capture was expected to run; it is {state}. {' '.join(said)}".strip())


def _state(record: FaultRecord) -> FaultState:
    healed = record.healed
    return FaultState(
        id=record.name,
        flow=record.fault.flow,
        direction=record.fault.direction,
        scope=record.fault.scope,
        in_force=record.in_force,
        matched=record.matched,
        cut_at=record.unix(record.cut.done_at),
        healed_at=None if healed is None else record.unix(healed.done_at),
        healed_by=record.healed_by,
    )


def _head(path: Path, octets: int) -> bytes:
    with path.open("rb") as file:
        return file.read(octets)
