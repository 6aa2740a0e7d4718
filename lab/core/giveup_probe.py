"""Give-up of sockets that only probe: idle with keepalive, and held back by a zero window.

Sources: ``tcp_keepalive_timer`` and ``tcp_probe_timer`` in ``net/ipv4/tcp_timer.c``, ``tcp_send_probe0`` in
``tcp_output.c``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lab.core.courses import Course, Start, all_courses, all_courses_of, check_length, summarise
from lab.core.front import Front
from lab.core.prediction import Cause, CopyKind, GiveUp, Situation
from lab.core.rto import RTO_BASE_S, initial_rto_s
from lab.core.timerwheel import granularity, to_jiffies

_MOST_PROBE_DOUBLINGS = 10
"""``tcp_probe0_when``: ilog2(TCP_RTO_MAX / TCP_RTO_MIN) + 1."""

_SHORTEST_WAIT = 2
"""TCP_TIMEOUT_MIN, jiffies: what ``tcp_clamp_probe0_to_user_timeout`` leaves at least."""

_NEVER_IDLE = GiveUp(Cause.NONE, "nothing is sent and keepalive is off: the kernel never notices")
_NEVER_PROBING = GiveUp(Cause.NONE, "the peer answers the window probes: no limit applies", copies=(0, None))


def predict_idle(situation: Situation) -> GiveUp:
    """When keepalive ends an established socket that has nothing to send; never without keepalive.

    The first probe leaves when the last packet received is ``keepalive_idle_s`` old, at the next expiry of a timer that
    may have been armed long before; so its lateness is anything up to one bucket. A probe that was answered has set the
    timer to the interval, whatever the idle time (``tcp_keepalive_timer``). The death is the expiry after the
    last probe, or, with a user timeout, the first one past that with a probe out, whatever the count.
    """
    options, settings = situation.options, situation.settings
    if not options.keepalive:
        return _NEVER_IDLE
    timer = keepalive_timer(situation)
    courses = all_courses(timer.courses, granularity(timer.interval))
    windows = summarise(courses, lambda _: CopyKind.KEEPALIVE_PROBE, settings.hz)
    rule = f"expiry after {timer.count} unanswered probes"
    if timer.user_timeout is not None:
        rule = "first probe tick at or past the bound, from the last packet"
    return GiveUp(
        cause=Cause.KEEPALIVE, rule=rule, bound_s=options.user_timeout_s, sends_reset=True, **windows._asdict()
    )


def keepalive_timer(situation: Situation) -> "KeepaliveTimer":
    """The keepalive timer of an idle socket that has one."""
    options, settings = situation.options, situation.settings
    idle = to_jiffies(_either(options.keepalive_idle_s, settings.keepalive_time_s), settings.hz)
    interval = to_jiffies(_either(options.keepalive_interval_s, settings.keepalive_intvl_s), settings.hz)
    due = to_jiffies(situation.keepalive_due_s or 0.0, settings.hz)
    return KeepaliveTimer(
        first=max(idle, due),
        lateness=granularity(idle if due <= idle else max(idle, interval)),
        interval=interval,
        count=options.keepalive_count if options.keepalive_count is not None else settings.keepalive_probes,
        user_timeout=to_jiffies(options.user_timeout_s, settings.hz) if options.user_timeout_s else None,
    )


@dataclass(frozen=True, slots=True)
class KeepaliveTimer:
    """The keepalive timer, in jiffies."""

    first: int
    """From the last packet received to the first expiry that sends a probe."""

    lateness: int
    """How much later than that the wheel may be."""

    interval: int
    count: int
    user_timeout: int | None

    def courses(self, start: Start) -> Iterator[Course]:
        """The courses that start at the first probe, with the extremes of what it may come after the anchor."""
        earliest, latest = self.first, self.first + self.lateness + start.lag
        offsets, now = [0], start.tick
        if self.count == 0 and self.user_timeout is None:
            yield from (Course((), first) for first in _spread(earliest, latest))
        while not self._surely_over(offsets, earliest - start.shift):
            now = start.fires_at(now, self.interval)
            offsets.append(now - start.tick)
            check_length(offsets)
            for first in self._first_probes(offsets, earliest, latest, start.shift):
                yield Course(tuple(first + offset for offset in offsets[:-1]), first + offsets[-1])

    def _surely_over(self, offsets: list[int], earliest: int) -> bool:
        if self.user_timeout is None:
            return len(offsets) > self.count
        return len(offsets) > 1 and earliest + offsets[-1] >= self.user_timeout

    def _first_probes(self, offsets: list[int], earliest: int, latest: int, shift: int) -> set[int]:
        """The extreme ages of the first probe for which the last of ``offsets`` is the death."""
        if self.user_timeout is None:
            return _spread(earliest, latest) if len(offsets) > self.count else set()
        limit = self.user_timeout + shift
        low = max(earliest, limit - offsets[-1])
        high = latest if len(offsets) == 2 else min(latest, limit - 1 - offsets[-2])
        return _spread(low, high) if low <= high else set()


def predict_zero_window(situation: Situation) -> GiveUp:
    """When a socket ends whose data the peer's closed window holds back.

    Every answer resets the count of probes, so a live peer keeps the socket for ever, unless a user timeout is set: it
    counts from the first probe, answered or not.
    """
    settings, options = situation.settings, situation.options
    if situation.peer_alive and not options.user_timeout_s:
        return _NEVER_PROBING
    hz = settings.hz
    timer = window_probe_timer(situation)
    windows = summarise(all_courses_of(timer.walk), lambda _: CopyKind.WINDOW_PROBE, hz)
    if options.user_timeout_s and (situation.peer_alive or windows.copies[0] < settings.retries2):
        rule = "first expiry at or past the bound, from the first window probe"
        return GiveUp(cause=Cause.USER_TIMEOUT, rule=rule, bound_s=options.user_timeout_s, **windows._asdict())
    rule = f"expiry after {settings.retries2} unanswered window probes"
    return GiveUp(cause=Cause.PROBES, rule=rule, **windows._asdict())


def window_probe_timer(situation: Situation) -> "WindowProbeTimer":
    """The window-probe timer of a socket whose peer has closed its window."""
    settings, options, hz = situation.settings, situation.options, situation.settings.hz
    rto_s = situation.rto_s if situation.rto_s is not None else initial_rto_s(settings, situation.srtt_s)
    base_s = max(rto_s, RTO_BASE_S)
    return WindowProbeTimer(
        base=to_jiffies(base_s, hz),
        rto_max=to_jiffies(settings.rto_max_s, hz),
        retries2=settings.retries2,
        backoff=situation.backoff,
        answered=situation.peer_alive,
        user_timeout=to_jiffies(options.user_timeout_s, hz) if options.user_timeout_s else None,
        probing=_probing(situation, base_s),
    )


def _probing(situation: Situation, base_s: float) -> int | None:
    """Jiffies from the first probe to the last packet received, None where no probe was sent before."""
    if situation.backoff == 0 and not situation.probing_s:
        return None
    implied_s = base_s * (2**situation.backoff - 2)
    return to_jiffies(situation.probing_s if situation.probing_s is not None else implied_s, situation.settings.hz)


@dataclass(frozen=True, slots=True)
class WindowProbeTimer:
    """The window-probe timer, in jiffies; it is armed anew by the last packet received."""

    base: int
    rto_max: int
    retries2: int
    backoff: int
    answered: bool
    user_timeout: int | None
    probing: int | None

    def walk(self, front: Front) -> None:
        """The course from every start."""
        first_probe = None if self.probing is None else front.moment(before=self.probing)
        while front.alive:
            probes = len(front.copies)
            if first_probe is None:
                front.wait(self.wait(probes, None))
                first_probe = front.moment()
            else:
                front.wait_within(self.wait(probes, None), partial(self.wait, probes), first_probe)
                front.end_where(self.kills, first_probe)
            if not self.answered and probes >= self.retries2:
                front.end()
            if front.alive:
                front.copy()
                check_length(front.copies)

    def kills(self, elapsed: int) -> bool:
        """Whether the user timeout ends the socket, with so much time elapsed since the very first probe."""
        return self.user_timeout is not None and elapsed >= self.user_timeout

    def wait(self, probes: int, elapsed: float | None) -> int:
        """How long the kernel waits after so many probes, with so much time elapsed since the very first one."""
        backoff = max(self.backoff, min(self.backoff + probes, self.retries2))
        wait = min(self.base << min(backoff, _MOST_PROBE_DOUBLINGS), self.rto_max)
        if self.user_timeout is None or elapsed is None:
            return wait
        return min(wait, max(math.ceil(self.user_timeout - elapsed), _SHORTEST_WAIT))


def _either(option: float | None, default: int) -> float:
    return option if option is not None else default


def _spread(low: int, high: int) -> set[int]:
    return {low, (low + high) // 2, high}
