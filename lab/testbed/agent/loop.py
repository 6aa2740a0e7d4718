"""A small event loop with asyncio's method names.

An agent needs readers, writers and timers, and must let pyroute2's blocking calls run and programs be forked from
inside a callback; asyncio forbids the first and makes the second fragile.
"""

import heapq
import itertools
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Callback = Callable[[], object]


@dataclass(order=True, slots=True)
class Timer:
    """A call that is due at an instant."""

    when: float
    order: int
    callback: Callback = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Never make the call; idempotent."""
        self.cancelled = True


class Loop:
    """Calls back when descriptors become ready and when instants come, until stopped."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        self._callbacks: dict[int, dict[int, Callback]] = {}
        self._timers: list[Timer] = []
        self._order = itertools.count()
        self._running = False

    def time(self) -> float:
        """CLOCK_MONOTONIC seconds."""
        return time.monotonic()

    def call_at(self, when: float, callback: Callback) -> Timer:
        """Call at an instant of ``time``, or right after."""
        timer = Timer(when, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    def call_later(self, delay_s: float, callback: Callback) -> Timer:
        """Call after a delay."""
        return self.call_at(self.time() + delay_s, callback)

    def add_reader(self, fd: int, callback: Callback) -> None:
        """Call whenever the descriptor can be read or has ended."""
        self._watch(fd, selectors.EVENT_READ, callback)

    def remove_reader(self, fd: int) -> None:
        """Forget a reader; no error where there is none."""
        self._watch(fd, selectors.EVENT_READ, None)

    def add_writer(self, fd: int, callback: Callback) -> None:
        """Call whenever the descriptor can be written."""
        self._watch(fd, selectors.EVENT_WRITE, callback)

    def remove_writer(self, fd: int) -> None:
        """Forget a writer; no error where there is none."""
        self._watch(fd, selectors.EVENT_WRITE, None)

    def stop(self) -> None:
        """Let ``run`` return after the callback that calls this."""
        self._running = False

    def run(self) -> None:
        """Serve until ``stop``."""
        self._running = True
        while self._running:
            ready = self._selector.select(self._patience())
            for key, events in ready:
                for event in (selectors.EVENT_READ, selectors.EVENT_WRITE):
                    # A callback before this one may have removed it.
                    if events & event and (callback := self._callbacks.get(key.fd, {}).get(event)):
                        callback()
            self._call_due()

    def _patience(self) -> float | None:
        while self._timers and self._timers[0].cancelled:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0].when - self.time()) if self._timers else None

    def _call_due(self) -> None:
        now = self.time()
        while self._timers and self._timers[0].when <= now:
            timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                timer.callback()

    def _watch(self, fd: int, event: int, callback: Callback | None) -> None:
        known = self._callbacks.get(fd, {})
        wanted = {kind: call for kind, call in known.items() if kind != event}
        if callback is not None:
            wanted[event] = callback
        events = sum(wanted)
        if not known and events:
            self._selector.register(fd, events)
        elif known and not events:
            self._selector.unregister(fd)
        elif events != sum(known):
            self._selector.modify(fd, events)
        if wanted:
            self._callbacks[fd] = wanted
        else:
            self._callbacks.pop(fd, None)
