"""What the controller needs of a router."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lab.core.fault import Fault, Matched
from lab.testbed.ports import CaptureSummary, Counters, CutReceipt, PassingFlow


class ControlledRouter(Protocol):
    """The part of ``ports.Router`` that is controlled; every testbed's router fulfils it, and so does ``LocalRouter``.

    Calls may come from several threads at once.
    """

    @property
    def firewall(self) -> str:
        """Which implementation owns the rules: iptables or nftables."""

    def prepare(self, fault: Fault) -> None:
        """As ``ports.Router.prepare``."""

    def cut(self, fault: Fault) -> CutReceipt:
        """As ``ports.Router.cut``."""

    def heal(self, fault: Fault) -> CutReceipt:
        """As ``ports.Router.heal``."""

    def matched(self, fault: Fault) -> Matched:
        """As ``ports.Router.matched``."""

    def forget(self, fault: Fault) -> None:
        """As ``ports.Router.forget``."""

    def flows(self) -> Sequence[PassingFlow]:
        """As ``ports.Router.flows``."""

    def counters(self) -> Counters:
        """As ``ports.Node.counters``."""

    def start_capture(
        self, folder: Path, *, filter_expression: str | None = None, ring_bytes: int = 0, limit_bytes: int = 0
    ) -> None:
        """As ``ports.Router.start_capture``."""

    def flush_capture(self) -> CaptureSummary:
        """As ``ports.Router.flush_capture``."""

    def stop_capture(self) -> CaptureSummary:
        """As ``ports.Router.stop_capture``."""
