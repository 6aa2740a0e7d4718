"""What became of each fault that the controller was asked for."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.core.fault import Fault, Matched
from lab.core.timeline import ClockPair
from lab.testbed.ports import CutReceipt

KEPT = 1000
"""Healed faults that are remembered; those in force always are."""

RULES_KEPT = 16
"""Of healed faults: a flow that is cut again finds its rules, and the table stays small, which keeps a cut fast."""

NOTHING = Matched(forward=0, return_=0)


@dataclass(slots=True)
class FaultRecord:
    """One cut and its heal."""

    fault: Fault
    heal_after_s: float | None
    cut: CutReceipt
    clock: ClockPair
    """One instant on both clocks, at the cut: turns instants into Unix time."""

    before: Matched
    """What earlier cuts of the same fault had dropped: the kernel goes on counting."""

    lost_before: int = 0
    """Packets that the captures had lost when its time began."""

    name: str = field(default_factory=lambda: secrets.token_hex(4))
    """Its id."""

    matched: Matched = NOTHING
    """Last reading, of this cut alone."""

    healed: CutReceipt | None = None
    healed_by: str | None = None
    """request, timer, heartbeat or shutdown."""

    @property
    def in_force(self) -> bool:
        """Whether the flow is dark."""
        return self.healed is None

    @property
    def heal_at(self) -> float | None:
        """When the timer heals it, CLOCK_MONOTONIC; None without one, or when it is healed."""
        due = self.in_force and self.heal_after_s is not None
        return self.cut.done_at + (self.heal_after_s or 0.0) if due else None

    def unix(self, instant: float) -> float:
        """Unix time of a CLOCK_MONOTONIC instant."""
        return instant + self.clock.offset

    def read(self, total: Matched) -> bool:
        """Take a reading of the kernel's counters; whether it is another than the last."""
        now = Matched(total.forward - self.before.forward, total.return_ - self.before.return_)
        changed, self.matched = now != self.matched, now
        return changed


class FaultBook:
    """All faults, oldest first."""

    def __init__(self) -> None:
        self._records: dict[str, FaultRecord] = {}
        self._totals: dict[Fault, Matched] = {}
        self._forgotten = NOTHING

    def __iter__(self) -> Iterator[FaultRecord]:
        """Oldest first."""
        return iter(list(self._records.values()))

    @property
    def in_force(self) -> list[FaultRecord]:
        """Those that keep a flow dark."""
        return [record for record in self._records.values() if record.in_force]

    def get(self, name: str) -> FaultRecord | None:
        """The fault of an id."""
        return self._records.get(name)

    def add(self, record: FaultRecord) -> None:
        """Remember a fault; the oldest healed ones are forgotten where they are too many."""
        self._records[record.name] = record
        healed = [name for name, one in self._records.items() if not one.in_force]
        for name in healed[: max(0, len(healed) - KEPT)]:
            del self._records[name]

    def total(self, fault: Fault) -> Matched:
        """What earlier cuts of the fault have dropped."""
        return self._totals.get(fault, NOTHING)

    @property
    def dropped(self) -> Matched:
        """What all faults have dropped."""
        counts = [self._forgotten, *self._totals.values(), *(record.matched for record in self.in_force)]
        return Matched(sum(count.forward for count in counts), sum(count.return_ for count in counts))

    @property
    def surplus(self) -> list[Fault]:
        """Faults whose rules nobody needs any more: all that are not in force, but for the last few."""
        dark = {record.fault for record in self.in_force}
        idle = [fault for fault in self._totals if fault not in dark]
        return idle[: max(0, len(idle) - RULES_KEPT)]

    def forget(self, fault: Fault) -> None:
        """The kernel's counters of a fault are gone; they begin at zero again."""
        total = self._totals.pop(fault)
        self._forgotten = Matched(self._forgotten.forward + total.forward, self._forgotten.return_ + total.return_)

    def close(self, record: FaultRecord, total: Matched) -> None:
        """Keep the last reading of a healed fault."""
        record.read(total)
        # The one that was healed last goes last.
        self._totals.pop(record.fault, None)
        self._totals[record.fault] = total
