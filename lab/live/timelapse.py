"""Session time: it runs like the wall clock, and faster during the long waits of a lapsed scenario.

Everything that a scenario measures (attempts every 10 s, a server that closes after 480 s of silence) is counted in
session time, so that a lapsed run's figures are the study's own. What must not be hurried, a watchdog's pings, keeps
to the wall.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Lapse:
    """From an instant on, session time runs by this factor."""

    since: float
    """CLOCK_MONOTONIC seconds: both ends of a testbed share that clock."""

    factor: float
    """Session seconds per second of the wall; 1 ends a lapse."""


@dataclass(slots=True)
class TimeMap:
    """Piecewise linear, monotonic, and the wall itself before the first lapse."""

    _pieces: list[tuple[float, float, float]] = field(default_factory=lambda: [(0.0, 0.0, 1.0)])
    """Wall instant, session instant, and the factor from there on; ascending."""

    def enter(self, lapse: Lapse) -> None:
        """Let time run by another factor; what lies before ``since`` stays as it was.

        Raises:
            ValueError: a factor that is not positive, or an instant before an earlier change.
        """
        if not 0 < lapse.factor < float("inf"):
            raise ValueError(f"Time runs by a positive factor; {lapse.factor} is none.")
        if lapse.since < self._pieces[-1][0]:
            raise ValueError(f"Time was changed at {self._pieces[-1][0]} already, after {lapse.since}.")
        self._pieces.append((lapse.since, self.session(lapse.since), lapse.factor))

    def session(self, wall: float) -> float:
        """Session time at an instant of the wall, seconds both."""
        began, then, factor = next(piece for piece in reversed(self._pieces) if piece[0] <= wall or piece[0] == 0)
        return then + (wall - began) * factor

    def wall(self, session: float) -> float:
        """When the session clock shows, or showed, this."""
        began, then, factor = next(piece for piece in reversed(self._pieces) if piece[1] <= session or piece[0] == 0)
        return began + (session - then) / factor

    @property
    def factor(self) -> float:
        """The present one."""
        return self._pieces[-1][2]
