"""What each state's rule demands of expiries: how long to the next one, and whether one should have killed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lab.core.giveup_minisock import fin_wait_2_waits, synack_retries, synack_wait
from lab.core.giveup_probe import keepalive_timer, window_probe_timer
from lab.core.giveup_retransmit import data_timers, syn_timer
from lab.core.prediction import Situation, State
from lab.core.timerwheel import granularity

_LATE_TICKS = 2
"""Jiffies that a handler may run late on a busy machine; one was common, two the most seen in some 200 runs."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of one socket's end; seconds from the anchor of its prediction."""

    copies_s: tuple[float, ...]
    """Every copy after the first send, in order; probes where the state sends probes."""

    death_s: float | None
    """When the socket was gone; None where it outlived the watch."""

    loss_probe: bool = True
    """Whether the first of ``copies_s`` is a tail-loss probe; states that have none ignore it."""

    tolerance_s: float = 0.02
    """How late after the fact ``death_s`` may have been read: the sampling interval, or a poll's wake-up."""

    closed_s: float | None = None
    """When the program closed the socket; its expiries had another bound until then. None: before anything was sent."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One state's rule over a list of expiries, seconds from the anchor."""

    expiries_s: tuple[float, ...]
    """Those that sent a copy."""

    wait_s: Callable[[Sequence[float]], tuple[float, float]]
    """Least and most time to the next expiry after these."""

    past_bound_s: Callable[[Sequence[float]], float]
    """By how much the last of these is past the bound; infinite where a count decides."""

    origin_s: float = 0.0
    """When the timer was set that the first expiry belongs to."""

    stamp_s: float = 0.0
    """Where elapsed time counts from."""


def rule_of(situation: Situation, observed: Observed) -> Rule:
    """The rule of a socket that something ends."""
    match situation.state:
        case State.ZERO_WINDOW:
            return _window_probe_rule(situation, observed)
        case State.SYN_RECEIVED:
            return _synack_rule(situation, observed)
        case State.FIN_WAIT_2:
            return _fin_wait_2_rule(situation)
        case State.ESTABLISHED if not situation.busy:
            return _keepalive_rule(situation, observed)
        case _:
            return _retransmission_rule(situation, observed)


def _retransmission_rule(situation: Situation, observed: Observed) -> Rule:
    hz = situation.settings.hz
    timer = syn_timer(situation) if situation.state is State.SYN_SENT else data_timers(situation)[0]
    probed = has_loss_probe(situation, observed)
    expiries = observed.copies_s[1:] if probed else observed.copies_s
    origin_s = observed.copies_s[0] if probed else 0.0
    stamp_s = 0.0 if timer.stamped else min((*expiries, observed.death_s or math.inf))

    def wait_s(earlier: Sequence[float]) -> tuple[float, float]:
        if earlier:
            return window_s(timer.wait(len(earlier), (earlier[-1] - stamp_s) * hz), hz)
        least_s, most_s = window_s(timer.first_waits[-1], hz)
        if not probed and len(timer.first_waits) > 1:  # a probe that was no copy, or that later writes put off
            most_s += window_s(timer.first_waits[0], hz)[1]
        return (0.0, math.inf) if situation.writes_on else (least_s, most_s)

    held = None if observed.closed_s is None else data_timers(replace(situation, orphan=False))[0]

    def past_bound_s(expiries: Sequence[float]) -> float:
        early = held is not None and observed.closed_s is not None and expiries[-1] <= observed.closed_s
        ruling = held if held is not None and early else timer
        return ruling.past_bound(len(expiries) - 1, (expiries[-1] - stamp_s) * hz) / hz

    return Rule(expiries, wait_s, past_bound_s, origin_s, stamp_s)


def has_loss_probe(situation: Situation, observed: Observed) -> bool:
    """Whether the first copy is to be taken for a tail-loss probe."""
    return observed.loss_probe and bool(observed.copies_s) and situation.state is not State.SYN_SENT


def _keepalive_rule(situation: Situation, observed: Observed) -> Rule:
    hz, timer = situation.settings.hz, keepalive_timer(situation)

    def past_bound_s(expiries: Sequence[float]) -> float:
        probes = len(expiries) - 1
        if timer.user_timeout is None:
            return math.inf if probes >= timer.count else -math.inf
        return expiries[-1] - timer.user_timeout / hz if probes else -math.inf

    def wait_s(earlier: Sequence[float]) -> tuple[float, float]:
        if earlier:
            return window_s(timer.interval, hz)
        # The same handler, which may run late for the first probe too.
        return timer.first / hz, (timer.first + timer.lateness + _LATE_TICKS) / hz

    return Rule(observed.copies_s, wait_s, past_bound_s)


def _window_probe_rule(situation: Situation, observed: Observed) -> Rule:
    hz, timer = situation.settings.hz, window_probe_timer(situation)
    events = (*observed.copies_s, *(() if observed.death_s is None else (observed.death_s,)))
    first_s = -timer.probing / hz if timer.probing is not None else min(events, default=0.0)

    def wait_s(earlier: Sequence[float]) -> tuple[float, float]:
        elapsed = None if timer.probing is None and not earlier else ((earlier or (0.0,))[-1] - first_s) * hz
        least_s, most_s = window_s(timer.wait(len(earlier), elapsed), hz)
        # A live peer's answer sets the timer anew, one round trip after the probe.
        return least_s, most_s + (situation.srtt_s if timer.answered else 0.0)

    def past_bound_s(expiries: Sequence[float]) -> float:
        probes = len(expiries) - 1
        if not timer.answered and probes >= timer.retries2:
            return math.inf
        if timer.user_timeout is None or (timer.probing is None and not probes):
            return -math.inf
        return expiries[-1] - first_s - timer.user_timeout / hz

    return Rule(observed.copies_s, wait_s, past_bound_s, stamp_s=first_s)


def _synack_rule(situation: Situation, observed: Observed) -> Rule:
    hz, retries = situation.settings.hz, synack_retries(situation)
    return Rule(
        observed.copies_s,
        lambda earlier: window_s(synack_wait(len(earlier), hz), hz),
        lambda expiries: math.inf if len(expiries) > retries else -math.inf,
    )


def _fin_wait_2_rule(situation: Situation) -> Rule:
    windows = [window_s(wait, situation.settings.hz) for wait in fin_wait_2_waits(situation)]
    window = (sum(least for least, _ in windows), sum(most for _, most in windows))
    return Rule((), lambda _: window, lambda _: math.inf)


def window_s(wait: int, hz: int) -> tuple[float, float]:
    """Least and most seconds from one handler to the next, for a timer set to ``wait`` jiffies."""
    return (wait - 1) / hz, (wait + granularity(wait) + _LATE_TICKS) / hz
