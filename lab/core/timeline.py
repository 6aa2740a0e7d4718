"""Facts with an instant, in order, on one clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Observation:
    """One fact."""

    at: float
    """CLOCK_MONOTONIC seconds, the clock of programs and samples; captures are brought onto it."""

    source: str
    """Vantage point: client, router, router-left, router-right, server, client-sink, server-sink, lab."""

    kind: str
    """What happened, as a hyphenated noun: cut, heal, line, exit, socket-sample, socket-gone, segment."""

    detail: Mapping[str, Any] = field(default_factory=dict)
    """JSON values only."""


@dataclass(frozen=True, slots=True)
class ClockPair:
    """One instant on both clocks, sampled back to back in the kernel that captures."""

    wall: float
    """CLOCK_REALTIME, Unix seconds."""

    monotonic: float
    """CLOCK_MONOTONIC, seconds."""

    @property
    def offset(self) -> float:
        """What to subtract from wall time to get monotonic time."""
        return self.wall - self.monotonic


def relative(observations: list[Observation], anchor: float) -> list[tuple[float, Observation]]:
    """The observations in order, each with its seconds from the anchor."""
    return sorted(((o.at - anchor, o) for o in observations), key=lambda pair: pair[0])
