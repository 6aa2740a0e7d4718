"""What the assistant did and saw: said at once, one JSON object per line, and kept so that a script can wait for it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.live.clock import Clock
from lab.programs.report import say


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    name: str
    at: float
    """CLOCK_MONOTONIC, seconds."""

    t: float
    """Session time, seconds."""

    fields: dict[str, Any]


class Events:
    """Tells and keeps events.

    Args:
        clock: Session time.
        out: Prints one; ``lab.programs.report.say`` or a test's own.
    """

    def __init__(self, clock: Clock, out: Callable[..., None] = say) -> None:
        self._clock = clock
        self._out = out
        self._changed = asyncio.Event()
        self.log: list[Event] = []
        self.unheard = False
        """Whoever read them has gone; the conversation goes on."""

    def tell(self, name: str, /, **fields: Any) -> Event:
        """Say an event now."""
        at = time.monotonic()
        event = Event(name, at, self._clock.session(at), fields)
        if not self.unheard:
            try:
                self._out(name, at=at, t=round(event.t, 6), **fields)
            except BrokenPipeError:
                self.unheard = True
        self.log.append(event)
        self._changed.set()
        self._changed = asyncio.Event()
        return event

    async def wait_for(self, *names: str, after: int = 0) -> tuple[int, Event]:
        """The first of any of these names from a place in the log on, once there is one."""
        while True:
            changed = self._changed
            for place in range(after, len(self.log)):
                if self.log[place].name in names:
                    return place, self.log[place]
            after = len(self.log)
            await changed.wait()
