"""Give-up by retransmission timeout: established, FIN_WAIT_1, LAST_ACK and SYN_SENT.

Sources: ``tcp_retransmit_timer``, ``tcp_write_timeout``, ``retransmits_timed_out`` and
``tcp_clamp_rto_to_user_timeout`` in ``net/ipv4/tcp_timer.c``, ``tcp_send_loss_probe`` and ``tcp_retransmit_skb`` in
``tcp_output.c``.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from lab.core.courses import Courses, Windows, all_courses_of, check_length, summarise
from lab.core.front import Front
from lab.core.prediction import Cause, CopyKind, GiveUp, Situation, State
from lab.core.rto import SYN_RTO_S, initial_rto_s, loss_probe_s, model_timeout_s
from lab.core.timerwheel import to_jiffies

_THIN_TIMEOUTS = 6
"""TCP_THIN_LINEAR_RETRIES: timeouts of a thin stream before it backs off."""

_THIN_SEGMENTS = 4
"""``tcp_stream_is_thin``: fewer in flight than this."""

_ORPHAN_RETRIES = 8
"""``tcp_orphan_retries``: what a setting of 0 stands for, as long as the RTO is below its maximum."""

_RULE = "first timeout at or past the bound, from the first timeout copy"

_ROUNDING = 1e-6
"""Jiffies; what floating-point bounds may be off by."""


@dataclass(frozen=True, slots=True)
class RetransmissionTimer:
    """The retransmission timer of one situation, in jiffies."""

    first_waits: tuple[int, ...]
    """Delays up to the first timeout; one is enough, a second one in front is the tail-loss probe's."""

    rto: int
    rto_max: int
    linear: int
    """Timeouts that do not double the RTO."""

    bound: float
    """Elapsed time at which an expiry kills."""

    bound_at_rto_max: float
    """The same for an expiry after a wait of ``rto_max``; another one for orphans only."""

    user_timeout: float | None
    """Replaces both bounds, and cuts the last wait."""

    most: int | None
    """Timeouts after which the next one kills whatever the time, None for any number."""

    stamped: bool
    """``retrans_stamp`` is set by the first send already (SYN) instead of by the first timeout copy."""

    probe_is_copy: bool

    def walk(self, front: Front) -> None:
        """The course from every start."""
        sent = front.moment()
        for wait in self.first_waits[:-1]:
            front.wait(wait)
            if self.probe_is_copy:
                front.copy()
        front.wait(self.first_waits[-1])
        stamp = sent if self.stamped else front.moment()
        timeouts = 0
        front.end_where(partial(self.kills, timeouts), stamp)
        while front.alive:
            front.copy()
            timeouts += 1
            check_length(front.copies)
            front.wait_within(self.rto_after(timeouts), partial(self.wait, timeouts), stamp)
            front.end_where(partial(self.kills, timeouts), stamp)

    def rto_after(self, timeouts: int) -> int:
        """The backed-off timeout after so many of them."""
        doublings = timeouts - self.linear
        if doublings <= 0:
            return self.rto if self.rto < self.rto_max else self.rto_max
        # More doublings than this exceed any rto_max; the shift must not grow without end.
        rto = self.rto << (doublings if doublings < 32 else 32)
        return rto if rto < self.rto_max else self.rto_max

    def kills(self, timeouts: int, elapsed: float) -> bool:
        """Whether an expiry after so many timeouts is the end, with so much time elapsed since the stamp."""
        return self.past_bound(timeouts, elapsed) >= -_ROUNDING

    def past_bound(self, timeouts: int, elapsed: float) -> float:
        """By how many jiffies the expiry is past the bound; infinite where a count decides."""
        if timeouts == 0:
            return math.inf if self.most == 0 else -math.inf
        if self.most is not None and timeouts >= self.most:
            return math.inf
        if self.user_timeout:
            return elapsed - self.user_timeout
        if self.bound_at_rto_max != self.bound and self.rto_after(timeouts) >= self.rto_max:
            return elapsed - self.bound_at_rto_max
        return elapsed - self.bound

    def wait(self, timeouts: int, elapsed: float) -> int:
        """How long the kernel waits for the next expiry: the backed-off timeout, cut to end on the user timeout."""
        rto = self.rto_after(timeouts)
        if self.user_timeout is None:
            return rto
        return min(rto, max(1, math.ceil(self.user_timeout - elapsed - _ROUNDING)))


def predict_retransmission(situation: Situation) -> GiveUp:
    """When the retransmission timer ends a socket that has sent into the hole.

    Args:
        situation: Established and busy, FIN_WAIT_1, LAST_ACK or SYN_SENT.
    """
    timers = [syn_timer(situation)] if situation.state is State.SYN_SENT else data_timers(situation)
    windows = _windows(tuple(timers), _kinds(situation, timers[0]), situation.settings.hz)
    cause, rule, bound_s = _decided_by(situation, windows)
    return GiveUp(cause=cause, rule=rule, bound_s=bound_s, **windows._asdict())


def data_timers(situation: Situation) -> list[RetransmissionTimer]:
    """The timer of a socket with data or a FIN in flight; several where the program's later writes move it."""
    settings, options = situation.settings, situation.options
    rto_s = situation.rto_s if situation.rto_s is not None else initial_rto_s(settings, situation.srtt_s)
    rto_s = min(rto_s, settings.rto_max_s)
    probe_s = loss_probe_s(settings, rto_s, situation.srtt_s, situation.segments)
    rto = to_jiffies(rto_s, settings.hz)
    probe = to_jiffies(probe_s, settings.hz) if probe_s is not None else None
    thin = settings.thin_linear_timeouts and situation.segments < _THIN_SEGMENTS
    bound_s, bound_at_rto_max_s = retries_bounds_s(situation)
    timer = RetransmissionTimer(
        first_waits=(rto,) if probe is None else (probe, rto),
        rto=rto,
        rto_max=to_jiffies(settings.rto_max_s, settings.hz),
        linear=_THIN_TIMEOUTS if thin and situation.state is State.ESTABLISHED else 0,
        bound=bound_s * settings.hz,
        bound_at_rto_max=bound_at_rto_max_s * settings.hz,
        user_timeout=options.user_timeout_s * settings.hz if options.user_timeout_s else None,
        most=None,
        stamped=False,
        probe_is_copy=not situation.probe_sends_new_data,
    )
    if not situation.writes_on or probe is None:
        return [timer]
    # tcp_schedule_loss_probe anew at each write; its expiry after a first probe restores the timeout of the head.
    waits = {(rto,), (probe, rto), *((early, total - early) for early in (2, probe) for total in (rto, rto + probe))}
    return [timer, *(replace(timer, first_waits=some) for some in sorted(waits) if some[-1] > 0)]


def syn_timer(situation: Situation) -> RetransmissionTimer:
    """The timer of a SYN: no RTT sample, no probe, ``retrans_stamp`` from the first one (``tcp_connect``)."""
    settings, options = situation.settings, situation.options
    retries = options.syn_retries or settings.syn_retries
    bound = model_timeout_s(retries, settings.rto_max_s, SYN_RTO_S) * settings.hz
    return RetransmissionTimer(
        first_waits=(to_jiffies(SYN_RTO_S, settings.hz),),
        rto=to_jiffies(SYN_RTO_S, settings.hz),
        rto_max=to_jiffies(settings.rto_max_s, settings.hz),
        linear=settings.syn_linear_timeouts,
        bound=bound,
        bound_at_rto_max=bound,
        user_timeout=options.user_timeout_s * settings.hz if options.user_timeout_s else None,
        most=syn_copies_at_most(situation),
        stamped=True,
        probe_is_copy=False,
    )


def syn_copies_at_most(situation: Situation) -> int:
    """How many copies of a SYN the count allows, linear ones included."""
    return (situation.options.syn_retries or situation.settings.syn_retries) + situation.settings.syn_linear_timeouts


def retries_bounds_s(situation: Situation) -> tuple[float, float]:
    """What the retries of a socket with data or a FIN in flight stand for.

    Args:
        situation: Established, FIN_WAIT_1 or LAST_ACK.

    Returns:
        Seconds for an expiry while the RTO is below its maximum, and for one at the maximum.
    """
    settings = situation.settings
    if not is_orphan(situation):
        bound_s = model_timeout_s(settings.retries2, settings.rto_max_s)
        return bound_s, bound_s
    alive = model_timeout_s(settings.orphan_retries or _ORPHAN_RETRIES, settings.rto_max_s)
    return alive, model_timeout_s(settings.orphan_retries, settings.rto_max_s)


def is_orphan(situation: Situation) -> bool:
    """Whether the program has let go of the socket, so that ``tcp_orphan_retries`` rules."""
    return situation.orphan and situation.state in (State.FIN_WAIT_1, State.LAST_ACK)


def _decided_by(situation: Situation, windows: Windows) -> tuple[Cause, str, float]:
    options, settings = situation.options, situation.settings
    if situation.state is State.SYN_SENT:
        most = syn_copies_at_most(situation)
        bound_s = model_timeout_s(options.syn_retries or settings.syn_retries, settings.rto_max_s, SYN_RTO_S)
        if windows.copies[0] < most and options.user_timeout_s:
            return (
                Cause.USER_TIMEOUT,
                "first expiry at or past the user timeout, from the first SYN",
                (options.user_timeout_s),
            )
        return Cause.SYN_RETRIES, f"expiry after {most} copies, or the first at or past the bound", bound_s
    if options.user_timeout_s:
        return (
            Cause.USER_TIMEOUT,
            "first timeout at or past the user timeout, from the first timeout copy",
            (options.user_timeout_s),
        )
    bound_s, bound_at_rto_max_s = retries_bounds_s(situation)
    if not is_orphan(situation):
        return Cause.RETRIES2, _RULE, bound_s
    first_timeout_s = windows.copy_times[-windows.copies[0]].time_s
    if bound_at_rto_max_s < bound_s and windows.give_up_s - first_timeout_s < bound_s:
        return Cause.ORPHAN_RETRIES, "first timeout after a wait of rto_max: an orphan gets no more", bound_at_rto_max_s
    return Cause.ORPHAN_RETRIES, _RULE, bound_s


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The kind of a copy by its index."""

    probes: int
    """Tail-loss probes among the copies; they come first."""

    later: CopyKind

    def of(self, index: int) -> CopyKind:
        """Of the copy with this index."""
        return CopyKind.TAIL_LOSS_PROBE if index < self.probes else self.later


@lru_cache(maxsize=256)
def _windows(timers: tuple[RetransmissionTimer, ...], kinds: _Kinds, hz: int) -> Windows:
    """All that the timers may do, the first one being the usual one.

    Remembered, since walks through every phase take some ten milliseconds, and sockets whose RTTs differ by
    microseconds have the same timer in jiffies.
    """
    per_timer = [all_courses_of(timer.walk) for timer in timers]
    every = [front for courses in per_timer for front in courses.every]
    courses = Courses(per_timer[0].typical, every, max(courses.stride for courses in per_timer))
    return summarise(courses, kinds.of, hz)


def _kinds(situation: Situation, timer: RetransmissionTimer) -> _Kinds:
    probes = len(timer.first_waits) - 1 if timer.probe_is_copy else 0
    if situation.state is State.SYN_SENT:
        later = CopyKind.SYN_COPY
    elif situation.state is not State.ESTABLISHED and situation.segments == 1:
        later = CopyKind.FIN_COPY
    else:
        later = CopyKind.TIMEOUT_COPY
    return _Kinds(probes, later)
