"""The rule after the fact: were these copies and this death what the kernel's rule demands?

Before a cut, the phase of the timer wheel is unknown and the prediction is a window. Afterwards the copies have shown
each expiry, and what is left is exact: every expiry came one wait after the one before, none of those that sent a copy
was past the bound, and the death is the first that was. A verdict can say no.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.core.giveup import predict
from lab.core.giveup_retransmit import data_timers, syn_timer
from lab.core.giveup_silent import (
    fin_wait_2_waits,
    keepalive_timer,
    synack_retries,
    synack_wait,
    window_probe_timer,
)
from lab.core.prediction import Situation, State
from lab.core.timerwheel import granularity

_COPY_TOLERANCE_S = 0.003
"""What a capture's stamp of a copy may be off by: the time between the timer's softirq and the tap."""

_COMPARISON_SLACK_S = 0.002
"""Closer to the bound than this a comparison may go either way: the kernel counts whole milliseconds, and two stamps
of a capture are off by less than one."""

_LATE_TICKS = 2
"""Jiffies that a handler may run late on a busy machine; one was common, two the most seen in 250 runs."""


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


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What the rule says about an observation."""

    holds: bool
    sentence: str
    """Why, with the numbers."""

    expiries_s: tuple[float, ...]
    """The timer's expiries that were judged, the death last."""

    bound_s: float | None
    """What the elapsed time was compared with; None where a count decides."""

    elapsed_s: float | None
    """Elapsed at the death, from where the bound counts."""


@dataclass(frozen=True, slots=True)
class _Rule:
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


def judge(situation: Situation, observed: Observed) -> Aftermath:
    """Whether the death is the first expiry at or past the bound, given the copies seen.

    Args:
        situation: What the prediction was made from, with the RTO as it was at the cut.
        observed: What was seen.

    Returns:
        The verdict. It fails too where a copy is missing or surplus, since then the expiries do not follow one another.
    """
    if predict(situation).give_up_s is None:
        return _judge_never(observed)
    rule = _rule(situation, observed)
    if observed.death_s is None:
        return Aftermath(False, "The socket was not seen to die.", rule.expiries_s, None, None)
    expiries = (*rule.expiries_s, observed.death_s)
    past_s, elapsed_s = rule.past_bound_s(expiries), observed.death_s - rule.stamp_s
    problem = (
        _probe_problem(situation, observed) or _gap_problem(rule, expiries, observed) or _bound_problem(rule, expiries)
    )
    bound_s = None if math.isinf(past_s) else elapsed_s - past_s
    return Aftermath(
        problem is None, problem or _agreement(len(expiries), bound_s, elapsed_s), expiries, bound_s, elapsed_s
    )


def _judge_never(observed: Observed) -> Aftermath:
    if observed.death_s is None:
        return Aftermath(True, "Nothing ends this socket, and nothing did.", observed.copies_s, None, None)
    return Aftermath(
        False, f"Nothing should end this socket; it died at {observed.death_s:.3f} s.", observed.copies_s, None, None
    )


def _rule(situation: Situation, observed: Observed) -> _Rule:
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


def _retransmission_rule(situation: Situation, observed: Observed) -> _Rule:
    hz = situation.settings.hz
    timer = syn_timer(situation) if situation.state is State.SYN_SENT else data_timers(situation)[0]
    probed = _has_loss_probe(situation, observed)
    expiries = observed.copies_s[1:] if probed else observed.copies_s
    origin_s = observed.copies_s[0] if probed else 0.0
    stamp_s = 0.0 if timer.stamped else min((*expiries, observed.death_s or math.inf))

    def wait_s(earlier: Sequence[float]) -> tuple[float, float]:
        if earlier:
            return _window_s(timer.wait(len(earlier), (earlier[-1] - stamp_s) * hz), hz)
        least_s, most_s = _window_s(timer.first_waits[-1], hz)
        if not probed and len(timer.first_waits) > 1:  # a probe that was no copy, or that later writes put off
            most_s += _window_s(timer.first_waits[0], hz)[1]
        return (0.0, math.inf) if situation.writes_on else (least_s, most_s)

    def past_bound_s(expiries: Sequence[float]) -> float:
        return timer.past_bound(len(expiries) - 1, (expiries[-1] - stamp_s) * hz) / hz

    return _Rule(expiries, wait_s, past_bound_s, origin_s, stamp_s)


def _has_loss_probe(situation: Situation, observed: Observed) -> bool:
    return observed.loss_probe and bool(observed.copies_s) and situation.state is not State.SYN_SENT


def _probe_problem(situation: Situation, observed: Observed) -> str | None:
    """What is wrong with the tail-loss probe, as a sentence."""
    sends = situation.busy or situation.state is not State.ESTABLISHED
    if situation.state in (State.ZERO_WINDOW, State.SYN_RECEIVED, State.FIN_WAIT_2, State.SYN_SENT) or not sends:
        return None
    waits = data_timers(situation)[0].first_waits
    if not _has_loss_probe(situation, observed):
        return None
    if len(waits) == 1:
        return "A tail-loss probe was seen where these settings send none."
    least_s, most_s = _window_s(waits[0], situation.settings.hz)
    at_s = observed.copies_s[0]
    if situation.writes_on or least_s - _COPY_TOLERANCE_S <= at_s <= most_s + _COPY_TOLERANCE_S:
        return None
    return f"The tail-loss probe at {at_s:.3f} s should have left {least_s:.3f} to {most_s:.3f} s after the send."


def _keepalive_rule(situation: Situation, observed: Observed) -> _Rule:
    hz, timer = situation.settings.hz, keepalive_timer(situation)

    def past_bound_s(expiries: Sequence[float]) -> float:
        probes = len(expiries) - 1
        if timer.user_timeout is None:
            return math.inf if probes >= timer.count else -math.inf
        return expiries[-1] - timer.user_timeout / hz if probes else -math.inf

    return _Rule(
        observed.copies_s, lambda earlier: _window_s(timer.interval if earlier else timer.idle, hz), past_bound_s
    )


def _window_probe_rule(situation: Situation, observed: Observed) -> _Rule:
    hz, timer = situation.settings.hz, window_probe_timer(situation)
    events = (*observed.copies_s, *(() if observed.death_s is None else (observed.death_s,)))
    first_s = -timer.probing / hz if timer.probing is not None else min(events, default=0.0)

    def wait_s(earlier: Sequence[float]) -> tuple[float, float]:
        elapsed = None if timer.probing is None and not earlier else ((earlier or (0.0,))[-1] - first_s) * hz
        least_s, most_s = _window_s(timer.wait(len(earlier), elapsed), hz)
        # A live peer's answer sets the timer anew, one round trip after the probe.
        return least_s, most_s + (situation.srtt_s if timer.answered else 0.0)

    def past_bound_s(expiries: Sequence[float]) -> float:
        probes = len(expiries) - 1
        if not timer.answered and probes >= timer.retries2:
            return math.inf
        if timer.user_timeout is None or (timer.probing is None and not probes):
            return -math.inf
        return expiries[-1] - first_s - timer.user_timeout / hz

    return _Rule(observed.copies_s, wait_s, past_bound_s, stamp_s=first_s)


def _synack_rule(situation: Situation, observed: Observed) -> _Rule:
    hz, retries = situation.settings.hz, synack_retries(situation)
    return _Rule(
        observed.copies_s,
        lambda earlier: _window_s(synack_wait(len(earlier), hz), hz),
        lambda expiries: math.inf if len(expiries) > retries else -math.inf,
    )


def _fin_wait_2_rule(situation: Situation) -> _Rule:
    windows = [_window_s(wait, situation.settings.hz) for wait in fin_wait_2_waits(situation)]
    window = (sum(least for least, _ in windows), sum(most for _, most in windows))
    return _Rule((), lambda _: window, lambda _: math.inf)


def _window_s(wait: int, hz: int) -> tuple[float, float]:
    """Least and most seconds from one handler to the next, for a timer set to ``wait`` jiffies."""
    return (wait - 1) / hz, (wait + granularity(wait) + _LATE_TICKS) / hz


def _gap_problem(rule: _Rule, expiries: Sequence[float], observed: Observed) -> str | None:
    """The first expiry that does not follow the one before, as a sentence."""
    before_s = rule.origin_s
    for index, at_s in enumerate(expiries):
        least_s, most_s = rule.wait_s(expiries[:index])
        is_death = index == len(expiries) - 1
        name = "the death" if is_death else "a copy"
        what = f"{name} at {at_s:.3f} s came {at_s - before_s:.3f} s after what was before"
        if at_s - before_s < least_s - _COPY_TOLERANCE_S:
            return f"Too early: {what}; the timer was set to {least_s:.3f} s at least."
        if at_s - before_s > most_s + (observed.tolerance_s if is_death else _COPY_TOLERANCE_S):
            return f"Too late: {what}; the timer fires within {most_s:.3f} s. A copy is missing, or the rule failed."
        before_s = at_s
    return None


def _bound_problem(rule: _Rule, expiries: Sequence[float]) -> str | None:
    """The first comparison with the bound that went the wrong way, as a sentence."""
    for index, at_s in enumerate(expiries[:-1]):
        past_s = rule.past_bound_s(expiries[: index + 1])
        if past_s > _COMPARISON_SLACK_S:
            return f"Died too late: at {at_s:.3f} s {_by(past_s)}, and a copy was sent instead."
    past_s = rule.past_bound_s(expiries)
    if past_s < -_COMPARISON_SLACK_S:
        return f"Died too early: at {expiries[-1]:.3f} s {_by(past_s)}."
    return None


def _by(past_s: float) -> str:
    if math.isinf(past_s):
        return "the count was reached" if past_s > 0 else "the count was not reached"
    return f"the bound was {'passed by' if past_s > 0 else 'missed by'} {abs(past_s):.3f} s"


def _agreement(expiries: int, bound_s: float | None, elapsed_s: float) -> str:
    if bound_s is None:
        return f"Died at expiry {expiries}, which is the last one that the count allows."
    return f"Died at the first expiry at or past the bound: {elapsed_s:.3f} s elapsed, the bound is {bound_s:.3f} s."
