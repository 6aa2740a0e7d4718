"""One socket of a flow, watched from before it exists until its kernel lists it no more."""

import time
from collections import deque

from lab.core.flow import Endpoint
from lab.core.sampling import SamplingSchedule
from lab.core.socket import SocketSample
from lab.testbed.ports import SocketTrack
from lab.testbed.sockets import SocketTable

MOST_SAMPLES = 4096
"""What a track keeps at most; about 1.5 MB."""


LATE_S = 0.005
"""A wake-up that comes later than this says that the machine was busy; the kernel's own timers were then late too."""

MOST_LATE = 1024
"""Late wake-ups kept; on a machine that has more, the latest ones tell enough."""


class SocketWatcher:
    """Samples one end of a flow at the instants that the schedule names; an event loop hosts it.

    The host calls ``on_wake`` at once and then whenever ``wake_at`` has come; nothing here blocks or sleeps.

    Args:
        table: Sockets of the end's namespace; may be shared, the host closes it.
        local: This end.
        remote: The other end.
        schedule: When to look; the default is meant for give-ups.
    """

    def __init__(
        self, table: SocketTable, local: Endpoint, remote: Endpoint, schedule: SamplingSchedule | None = None
    ) -> None:
        self._table = table
        self._local = local
        self._remote = remote
        self._schedule = schedule or SamplingSchedule()
        self._wake_at: float | None = 0.0
        self._kept: list[SocketSample] = []
        self._last: SocketSample | None = None
        self._cookie: int | None = None
        self._gone: tuple[float, float] | None = None
        self._late: deque[tuple[float, float]] = deque(maxlen=MOST_LATE)
        self.looks = 0
        """How often the kernel was asked."""

    def wake_at(self) -> float | None:
        """When to call ``on_wake`` next, CLOCK_MONOTONIC seconds; None once the socket is gone."""
        return self._wake_at

    def on_wake(self, now: float) -> None:
        """Look at the socket once, unless it is too early or it is gone.

        Args:
            now: CLOCK_MONOTONIC seconds.

        Raises:
            OSError: the kernel refused to answer; the watch goes on at ``wake_at``.
        """
        if self._wake_at is None or now < self._wake_at:
            return
        if self.looks and now - self._wake_at > LATE_S:
            self._late.append((now, now - self._wake_at))
        self.looks += 1
        self._wake_at = now + self._schedule.sparse_s  # Where the kernel refuses to answer.
        listed = self._table.query(self._local, self._remote)
        after = time.monotonic()
        if listed is None and self._last is not None:
            # A socket that changes into its time-wait socket can be out of the tables for an instant.
            listed = self._table.query(self._local, self._remote)
        if self._last is not None and (listed is None or listed.cookie != self._cookie):
            self._gone = (self._last.at, after)
            self._wake_at = None
            return
        if listed is not None:
            self._cookie = listed.cookie
            self._keep(listed.sample)
        self._wake_at = self._schedule.next_at(self._last, after)

    def track(self) -> SocketTrack:
        """What was seen so far: each change with the look before it, and the first and last look."""
        samples = [*self._kept]
        if self._last is not None and self._last is not samples[-1]:
            samples.append(self._last)
        if self._gone is None:
            return SocketTrack(samples=samples, gone_at=None, gone_within_s=0.0, late=tuple(self._late))
        seen, missing = self._gone
        return SocketTrack(
            samples=samples, gone_at=(seen + missing) / 2, gone_within_s=(missing - seen) / 2, late=tuple(self._late)
        )

    def _keep(self, sample: SocketSample) -> None:
        before, self._last = self._last, sample
        if before is None:
            self._kept.append(sample)
        elif _essence(before) != _essence(sample):
            if before is not self._kept[-1]:
                self._kept.append(before)
            self._kept.append(sample)
        if len(self._kept) > MOST_SAMPLES:
            # A busy flow changes at every look. Every other sample of it says as much; the first one stays.
            del self._kept[1::2]


def _essence(sample: SocketSample) -> tuple[object, ...]:
    """What makes one sample worth keeping beside another."""
    return (
        sample.state,
        sample.timer,
        sample.backoff,
        sample.retransmits,
        sample.unacked,
        sample.total_retrans,
        sample.inode,
    )
