"""The rule after the fact: were these copies and this death what the kernel's rule demands?

Before a cut, the phase of the timer wheel is unknown and the prediction is a window. Afterwards the copies have shown
each expiry, and what is left is exact: every expiry came one wait after the one before, none of those that sent a copy
was past the bound, and the death is the first that was. A verdict can say no.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lab.core.aftermath_rules import Observed, Rule, has_loss_probe, rule_of, window_s
from lab.core.giveup import predict
from lab.core.giveup_retransmit import data_timers
from lab.core.prediction import Situation, State

_COPY_TOLERANCE_S = 0.003
"""What a capture's stamp of a copy may be off by: the time between the timer's softirq and the tap."""

_COMPARISON_SLACK_S = 0.002
"""Closer to the bound than this a comparison may go either way: the kernel counts whole milliseconds, and two stamps
of a capture are off by less than one."""


_PROBING = (State.ESTABLISHED, State.FIN_WAIT_1, State.LAST_ACK)
"""States that send tail-loss probes."""


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
    rule = rule_of(situation, observed)
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


def _probe_problem(situation: Situation, observed: Observed) -> str | None:
    """What is wrong with the tail-loss probe, as a sentence."""
    idle = situation.state is State.ESTABLISHED and not situation.busy
    if situation.state not in _PROBING or idle or not has_loss_probe(situation, observed):
        return None
    waits = data_timers(situation)[0].first_waits
    if len(waits) == 1:
        return "A tail-loss probe was seen where these settings send none."
    least_s, most_s = window_s(waits[0], situation.settings.hz)
    at_s = observed.copies_s[0]
    if situation.writes_on or least_s - _COPY_TOLERANCE_S <= at_s <= most_s + _COPY_TOLERANCE_S:
        return None
    return f"The tail-loss probe at {at_s:.3f} s should have left {least_s:.3f} to {most_s:.3f} s after the send."


def _gap_problem(rule: Rule, expiries: Sequence[float], observed: Observed) -> str | None:
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


def _bound_problem(rule: Rule, expiries: Sequence[float]) -> str | None:
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
