"""What happened, in order, for those who listen and those who come back.

The last thousand events are kept. An id is ``LIFE.NUMBER``: numbers grow by one, and a life is one controller's, so
that a listener who comes back to another controller is told everything instead of nothing.
"""

import collections
import itertools
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEPT = 1000


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    number: int
    at: float
    """Unix time."""

    kind: str
    """Hyphenated, stable."""

    detail: Mapping[str, Any]
    """JSON values."""


class EventLog:
    """Takes events from any thread and wakes whoever listens."""

    def __init__(self) -> None:
        self.life = secrets.token_hex(4)
        """Tells this controller's ids from those of an earlier one."""

        self._events: collections.deque[Event] = collections.deque(maxlen=KEPT)
        self._numbers = itertools.count(1)
        self._listeners: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more will come."""
        return self._closed

    def publish(self, at: float, kind: str, detail: Mapping[str, Any]) -> Event:
        """Add an event and wake the listeners."""
        with self._lock:
            event = Event(next(self._numbers), at, kind, detail)
            self._events.append(event)
            listeners = list(self._listeners)
        for wake in listeners:
            wake()
        return event

    def after(self, number: int) -> Sequence[Event]:
        """Those that are kept and came after a number."""
        with self._lock:
            return [event for event in self._events if event.number > number]

    def name(self, event: Event) -> str:
        """The event's id."""
        return f"{self.life}.{event.number}"

    def number_of(self, name: str) -> int:
        """The number in an id of this life; 0 for any other, which is before all."""
        life, _, number = name.partition(".")
        return int(number) if life == self.life and number.isascii() and number.isdecimal() else 0

    def listen(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` after each event, in the thread that publishes it."""
        with self._lock:
            self._listeners.append(wake)

    def forget(self, wake: Callable[[], object]) -> None:
        """Stop that; idempotent."""
        with self._lock:
            if wake in self._listeners:
                self._listeners.remove(wake)

    def close(self) -> None:
        """Let every listener come to its end; idempotent."""
        with self._lock:
            self._closed = True
            listeners = list(self._listeners)
        for wake in listeners:
            wake()
