"""A trigger at work: it hears every line of its program, and wakes whoever waits for the one that matters."""

import re
import threading

from lab.core.errors import UsageError
from lab.run.flowfinder import tail
from lab.run.patience import Patience
from lab.run.trigger import LineTrigger
from lab.testbed.ports import Line, Process

LOOK_S = 0.25
"""Between two looks at whether the program still runs; the line itself is heard at once."""


class Cue:
    """Hears a program's lines until the one that the trigger is about.

    Args:
        trigger: What is waited for.
        process: Whose output it is.
        wake: Set when the line comes, by the thread that reads the testbed's events.
        since: Earlier lines do not count, CLOCK_MONOTONIC.
    """

    def __init__(self, trigger: LineTrigger, process: Process, wake: threading.Event, *, since: float = 0.0) -> None:
        self.trigger = trigger
        self._process = process
        self._wake = wake
        self._since = since
        self._expression = re.compile(trigger.pattern)
        self.line: Line | None = None
        """The first that matched."""
        process.listen(self._hear)

    @property
    def due_at(self) -> float | None:
        """When what follows the line is to be done, CLOCK_MONOTONIC; None while the line has not come."""
        return None if self.line is None else self.line.at + self.trigger.delay_s

    def over_at(self, now: float) -> float | None:
        """When nothing more is to be waited for: the line's time, or now where its program has ended without it."""
        if self.line is None and self._process.returncode is not None:
            return now
        return self.due_at

    def require(self, now: float, since: float) -> None:
        """See that the line has come, or still may.

        Args:
            now: CLOCK_MONOTONIC.
            since: When the waiting began.

        Raises:
            UsageError: its program has ended, or its time is over.
        """
        if self.line is not None:
            return
        ended = self._process.returncode
        if ended is not None:
            self.refuse(f"before it ended with status {ended}")
        if now >= since + self.trigger.within_s:
            self.refuse(f"within {self.trigger.within_s:g} s")

    def refuse(self, when: str) -> None:
        """Say that the line never came.

        Args:
            when: Until when it was waited for, in words.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"The {self.trigger.node} printed no line with {self.trigger.pattern!r} {when}. {tail(self._process)}",
            fix="give a regular expression that is found in a line which the program prints, and see that it flushes",
        )

    def await_due(self, patience: Patience) -> float:
        """Wait for the line and for what its trigger adds; the instant of the line, CLOCK_MONOTONIC.

        Raises:
            UsageError: it never came.
        """
        began = patience.now()
        while self.line is None:
            self._wake.clear()
            self.require(patience.now(), began)
            if self.line is None:
                patience.pause(LOOK_S, self._wake)
        patience.pause_until(self.line.at + self.trigger.delay_s)
        return self.line.at

    def _hear(self, line: Line) -> None:
        if self.line is None and line.at >= self._since and self._expression.search(line.text):
            self.line = line
            self._wake.set()
