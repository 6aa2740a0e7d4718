"""Give-up of sockets that send no data into the hole: idle, zero window, SYN_RECEIVED, FIN_WAIT_2.

Sources: ``tcp_keepalive_timer``, ``tcp_probe_timer`` and ``tcp_send_probe0`` (``net/ipv4/tcp_timer.c``,
``tcp_output.c``), ``reqsk_timer_handler`` (``inet_connection_sock.c``), ``tcp_fin_time`` and ``tcp_time_wait``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.core.courses import Course, Start, all_courses, all_courses_of, summarise
from lab.core.prediction import Cause, CopyKind, GiveUp, Situation
from lab.core.rto import RTO_BASE_S, SYN_RTO_S, initial_rto_s
from lab.core.timerwheel import granularity, to_jiffies

_SYNACK_RTO_MAX_S = 120.0
"""TCP_RTO_MAX: SYN/ACK timers of Linux 6.18 do not read tcp_rto_max_ms."""

_TIMEWAIT_S = 60.0
"""TCP_TIMEWAIT_LEN."""

_LINGER2_MAX_S = 120.0
"""TCP_FIN_TIMEOUT_MAX: a larger TCP_LINGER2 counts as this."""

_MOST_PROBE_DOUBLINGS = 10
"""``tcp_probe0_when``: ilog2(TCP_RTO_MAX / TCP_RTO_MIN) + 1."""

_SHORTEST_WAIT = 2
"""TCP_TIMEOUT_MIN, jiffies: what ``tcp_clamp_probe0_to_user_timeout`` leaves at least."""

_ROUNDING = 1e-6

NEVER_IDLE = GiveUp(Cause.NONE, "nothing is sent and keepalive is off: the kernel never notices")
NEVER_PROBING = GiveUp(Cause.NONE, "the peer answers the window probes: no limit applies", copies=(0, None))
NEVER_FIN_WAIT_2 = GiveUp(Cause.NONE, "the program still holds the socket: FIN_WAIT_2 has no limit")


def predict_idle(situation: Situation) -> GiveUp:
    """When keepalive ends an established socket that has nothing to send; never without keepalive.

    The first probe leaves when the last packet received is ``keepalive_idle_s`` old, at the next expiry of a timer that
    may have been armed long before; so its lateness is anything up to one bucket. The death is the expiry after the
    last probe, or, with a user timeout, the first one past that with a probe out, whatever the count.
    """
    options, settings = situation.options, situation.settings
    if not options.keepalive:
        return NEVER_IDLE
    timer = _Keepalive(
        idle=to_jiffies(_either(options.keepalive_idle_s, settings.keepalive_time_s), settings.hz),
        interval=to_jiffies(_either(options.keepalive_interval_s, settings.keepalive_intvl_s), settings.hz),
        count=options.keepalive_count if options.keepalive_count is not None else settings.keepalive_probes,
        user_timeout=to_jiffies(options.user_timeout_s, settings.hz) if options.user_timeout_s else None,
    )
    courses = all_courses(timer.courses, granularity(timer.interval))
    windows = summarise(courses, lambda _: CopyKind.KEEPALIVE_PROBE, settings.hz)
    rule = f"expiry after {timer.count} unanswered probes"
    if timer.user_timeout is not None:
        rule = "first probe expiry at or past the user timeout, from the last packet received"
    return GiveUp(
        cause=Cause.KEEPALIVE, rule=rule, bound_s=options.user_timeout_s, sends_reset=True, **windows._asdict()
    )


@dataclass(frozen=True, slots=True)
class _Keepalive:
    """The keepalive timer, in jiffies."""

    idle: int
    interval: int
    count: int
    user_timeout: int | None

    def courses(self, start: Start) -> Iterator[Course]:
        """The courses that start at the first probe, with the extremes of what it may come after the anchor."""
        earliest, latest = self.idle, self.idle + granularity(self.idle) + start.lag
        offsets, now = [0], start.tick
        while not self._surely_over(offsets, earliest - start.shift):
            now = start.fires_at(now, self.interval)
            offsets.append(now - start.tick)
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
        return NEVER_PROBING
    hz = settings.hz
    rto_s = situation.rto_s if situation.rto_s is not None else initial_rto_s(settings, situation.srtt_s)
    base_s = max(rto_s, RTO_BASE_S)
    timer = _WindowProbes(
        base=to_jiffies(base_s, hz),
        rto_max=to_jiffies(settings.rto_max_s, hz),
        retries2=settings.retries2,
        backoff=situation.backoff,
        answered=situation.peer_alive,
        user_timeout=to_jiffies(options.user_timeout_s, hz) if options.user_timeout_s else None,
        probing=_probing(situation, base_s),
    )
    windows = summarise(all_courses_of(timer.walk), lambda _: CopyKind.WINDOW_PROBE, hz)
    if options.user_timeout_s and (situation.peer_alive or windows.copies[0] < settings.retries2):
        rule = "first expiry at or past the user timeout, from the first window probe"
        return GiveUp(cause=Cause.USER_TIMEOUT, rule=rule, bound_s=options.user_timeout_s, **windows._asdict())
    rule = f"expiry after {settings.retries2} unanswered window probes"
    return GiveUp(cause=Cause.PROBES, rule=rule, **windows._asdict())


def _probing(situation: Situation, base_s: float) -> int | None:
    """Jiffies from the first probe to the last packet received, None where no probe was sent before."""
    if situation.backoff == 0 and not situation.probing_s:
        return None
    implied_s = base_s * (2**situation.backoff - 2)
    return to_jiffies(situation.probing_s if situation.probing_s is not None else implied_s, situation.settings.hz)


@dataclass(frozen=True, slots=True)
class _WindowProbes:
    """The window-probe timer, in jiffies; it is armed anew by the last packet received."""

    base: int
    rto_max: int
    retries2: int
    backoff: int
    answered: bool
    user_timeout: int | None
    probing: int | None

    def walk(self, start: Start) -> Course:
        """The course from one start."""
        copies: list[int] = []
        first_probe = None if self.probing is None else start.tick - self.probing
        backoff, now = self.backoff, start.tick
        while True:
            now = start.fires_at(now, self._wait(backoff, first_probe, now - start.shift))
            if first_probe is None:
                first_probe = now
            elif self.user_timeout is not None and now - first_probe - start.shift >= self.user_timeout:
                break
            if not self.answered and len(copies) >= self.retries2:
                break
            copies.append(now - start.tick)
            backoff = min(backoff + 1, max(backoff, self.retries2))
        return Course(tuple(copies), now - start.tick)

    def _wait(self, backoff: int, first_probe: int | None, now: int) -> int:
        wait = min(self.base << min(backoff, _MOST_PROBE_DOUBLINGS), self.rto_max)
        if self.user_timeout is None or first_probe is None:
            return wait
        return min(wait, max(self.user_timeout - (now - first_probe), _SHORTEST_WAIT))


def predict_syn_received(situation: Situation) -> GiveUp:
    """When a listener forgets a connection request whose SYN/ACK is never answered, nor its SYN repeated.

    TCP_SYNCNT of the listener replaces ``tcp_synack_retries``; user timeout and ``tcp_rto_max_ms`` have no effect. A
    queue more than half full shortens the count (``reqsk_timer_handler``), which this leaves out.
    """
    settings = situation.settings
    retries = situation.options.syn_retries or settings.synack_retries
    base, longest = to_jiffies(SYN_RTO_S, settings.hz), to_jiffies(_SYNACK_RTO_MAX_S, settings.hz)

    def walk(start: Start) -> Course:
        now, copies = start.fires_at(start.tick, base), []
        for timeouts in range(1, retries + 1):
            copies.append(now - start.tick)
            now = start.fires_at(now, min(base << timeouts, longest))
        return Course(tuple(copies), now - start.tick)

    windows = summarise(all_courses_of(walk), lambda _: CopyKind.SYN_COPY, settings.hz)
    return GiveUp(cause=Cause.SYNACK_RETRIES, rule=f"expiry after {retries} copies of the SYN/ACK", **windows._asdict())


def predict_fin_wait_2(situation: Situation) -> GiveUp:
    """When an orphan in FIN_WAIT_2 goes; a socket that the program still holds stays for ever.

    Up to 60 s the wait is ``tcp_fin_timeout``, at least 3.5 RTOs. Above, the kernel waits for what exceeds 60 s, and
    then once more for the same (``tcp_keepalive_timer`` hands only the excess to ``tcp_time_wait``): 61 s become 2 s.
    """
    if not situation.orphan:
        return NEVER_FIN_WAIT_2
    settings, options = situation.settings, situation.options
    rto_s = situation.rto_s if situation.rto_s is not None else initial_rto_s(settings, situation.srtt_s)
    asked_s = min(options.linger2_s, _LINGER2_MAX_S) if options.linger2_s else settings.fin_timeout_s
    rto = to_jiffies(rto_s, settings.hz)
    least = (rto << 2) - (rto >> 1)
    timeout, limit = max(to_jiffies(asked_s, settings.hz), least), to_jiffies(_TIMEWAIT_S, settings.hz)
    waits = [timeout] if timeout <= limit else [timeout - limit, max(timeout - limit, least)]

    def walk(start: Start) -> Course:
        now = start.tick
        for wait in waits:
            now = start.fires_at(now, wait)
        return Course((), now - start.tick)

    windows = summarise(all_courses_of(walk), lambda _: CopyKind.FIN_COPY, settings.hz)
    rule = "the wait of tcp_fin_timeout" if len(waits) == 1 else "twice what tcp_fin_timeout exceeds 60 s by"
    return GiveUp(cause=Cause.FIN_TIMEOUT, rule=rule, bound_s=timeout / settings.hz, **windows._asdict())


def _either(option: float | None, default: int) -> float:
    return option if option is not None else default


def _spread(low: int, high: int) -> set[int]:
    return {low, (low + high) // 2, high}
