"""When to look at a socket next, so that its end is dated closely and the looking costs little.

The kernel announces every expiry (``idiag_expires``), but its timer wheel fires late: a wait of j jiffies fires at the
next multiple of g jiffies after it, g = 8^n for the smallest n with j < 63 * 8^n (``calc_wheel_index`` in
kernel/time/timer.c). So of the whole wait only the last 1/8 or less, from the announced instant on, can hold the
firing; where in it depends on the kernel's count of jiffies, which it tells nobody. Look sparsely before that window
and densely inside it; while the timer is overdue the kernel announces 0, so the last sample alone says where we are.
(The count could be learned from earlier firings. It would save part of that 1/8, and a wrong guess would cost a date.)

A window that has been open for long may be looked at less often: ``dense_s`` grows to ``coarse_s``, whose half is still
well below the 20 ms to which a death must be dated.
"""

import math
from dataclasses import dataclass, field

from lab.core.socket import SocketSample


@dataclass(slots=True)
class SamplingSchedule:
    """The schedule of one socket; ``next_at`` after every look.

    Looks per second: 4 to 20 while nothing is due, 200 in the first half second of an overdue window, then 50; by the
    wheel's rule a window is open for at most 1/8 of the time. Measured with thirty testbeds on two cores, all sockets
    dying at once: 12 looks and 6 ms of CPU per second for the dying end, 6 looks and 4 ms for the other one, event loop
    included.
    """

    sparse_s: float = 0.25
    """Longest time between two looks."""

    busy_s: float = 0.05
    """Shortest of the sparse intervals; between the two, one RTO: no socket dies before its second time-out."""

    dense_s: float = 0.005
    """Between two looks while the timer is due; about one jiffy, in which time stands still for the wheel anyway."""

    coarse_s: float = 0.02
    """The same once the window has been open for ``patience_s``."""

    patience_s: float = 0.5
    """How long an overdue timer is looked at every ``dense_s``."""

    lead_s: float = 0.012
    """How long before the announced expiry to start: two jiffies of rounding at HZ 250, and a late wake-up."""

    fresh_s: float = 0.1
    """How long a new socket is looked at every ``dense_s``."""

    awaited_s: float = 10.0
    """How long a socket that does not exist yet is looked for every ``coarse_s``; then sparsely."""

    _awaited_since: float | None = field(default=None, init=False)

    _since: float | None = field(default=None, init=False)
    """When the socket was first seen."""

    _overdue_since: float | None = field(default=None, init=False)

    def next_at(self, sample: SocketSample | None, now: float) -> float:
        """The instant of the next look.

        Args:
            sample: What the look that just ended saw; None where the socket does not exist yet.
            now: That look's end, on the clock of ``sample.at``, seconds.

        Returns:
            An instant after ``now``; after the socket's end nobody need ask.
        """
        if sample is None:
            self._awaited_since = now if self._awaited_since is None else self._awaited_since
            return now + (self.coarse_s if now < self._awaited_since + self.awaited_s else self.sparse_s)
        if self._since is None:
            self._since = now
        due_at = _due_at(sample) - self.lead_s
        if now < due_at:
            self._overdue_since = None
            step = self.dense_s if now < self._since + self.fresh_s else self._sparse(sample)
            return min(now + step, max(due_at, now + self.dense_s))
        if self._overdue_since is None:
            self._overdue_since = now
        return now + (self.dense_s if now < self._overdue_since + self.patience_s else self.coarse_s)

    def _sparse(self, sample: SocketSample) -> float:
        # A time-wait or request socket tells no RTO.
        return min(max(sample.rto_s, self.busy_s), self.sparse_s) if sample.rto_s else self.sparse_s


def _due_at(sample: SocketSample) -> float:
    return math.inf if sample.expires_s is None else sample.at + sample.expires_s
