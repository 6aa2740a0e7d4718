"""One kind of attempt: at most one is open, and the next one keeps its distance."""

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Line:
    """The attempts to resume, or those for a new session; instants are session seconds."""

    every_s: float
    """From start to start."""

    attempt: int | None = None
    """The one that is open."""

    began_at: float = -math.inf
    """The latest start, of an earlier loss too: a server that takes and drops is not hammered."""

    due_at: float | None = None
    """The next start; None: none is planned."""

    _at_once: bool = False
    """The open one was begun on a condition that has changed since."""

    def plan(self, now: float) -> None:
        """Start one as soon as the distance allows, unless one is open or planned."""
        if self.attempt is None and self.due_at is None:
            self.due_at = max(now, self.began_at + self.every_s)

    def plan_at_once(self, now: float) -> None:
        """Start one now, or as soon as the open one is answered, whatever the distance."""
        if self.attempt is None:
            self.due_at = now
        else:
            self._at_once = True

    def begin(self, attempt: int, now: float) -> None:
        """An attempt starts."""
        self.attempt, self.began_at, self.due_at = attempt, now, None

    def failed(self, now: float) -> None:
        """The open one came to nothing; the next one is planned."""
        at_once, self.attempt, self._at_once = self._at_once, None, False
        self.due_at = now if at_once else max(now, self.began_at + self.every_s)

    def stop(self) -> int | None:
        """No more of these; the attempt that is open still."""
        left, self.attempt, self.due_at, self._at_once = self.attempt, None, None, False
        return left
