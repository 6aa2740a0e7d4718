"""A socket that its program closed in the dark: what its kernel made of it from then on, and what was said of that.

When a program closes is its own affair, and not known before. What follows is the kernel's: the socket goes on along
the ladder that it is on, and the first expiry after the close at or past ``tcp_orphan_retries`` is its end. So the
branch that is stated before the cut, of a socket that is closed at once, holds for every close before its window; a
later one finds the bound passed already, and ends the socket at its next expiry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.core.aftermath import Aftermath, judge
from lab.core.aftermath_rules import Observed
from lab.core.fault import Cut, Placement
from lab.core.prediction import CopyKind, GiveUp
from lab.core.retransmission import Classified
from lab.core.segment_class import Trigger
from lab.run.fate import KernelFate
from lab.run.forecast import EndForecast
from lab.run.traffic import Traffic
from lab.run.watched import Watched
from lab.testbed.ports import SocketTrack


@dataclass(frozen=True, slots=True)
class Orphan:
    """What became of a socket after its program had closed it; instants on CLOCK_MONOTONIC."""

    closed_at: float
    """By when it was closed."""

    gone_at: float | None
    """When the kernel stopped listing it; None where it was there to the end of the watch."""

    within_s: float
    """How exactly that is known, plus or minus."""

    cause: str | None
    """Value of ``Cause``; None where its timer did not end it."""

    copies: tuple[Classified, ...]
    """Those that left after the close."""

    predicted: GiveUp | None
    """Counted from ``anchor``, its copies from the close on; None where nothing was said of such a case."""

    anchor: float | None
    """First lost send."""

    @property
    def window(self) -> tuple[float, float] | None:
        """When its end was predicted, CLOCK_MONOTONIC."""
        if self.predicted is None or self.predicted.window_s is None or self.anchor is None:
            return None
        return self.anchor + self.predicted.window_s[0], self.anchor + self.predicted.window_s[1]


def read_orphan(
    fate: KernelFate, track: SocketTrack, watched: Watched, forecast: EndForecast, traffic: Traffic
) -> Orphan:
    """The orphan of a program that closed its socket.

    Args:
        fate: The socket's, as that of a closed one.
        track: Its samples.
        watched: The run.
        forecast: What was said of the end before the cut.
        traffic: What it sent.
    """
    closed_at = fate.closed_at
    assert closed_at is not None
    gone_at, within_s = (fate.gone_at, fate.within_s) if fate.gone_at else (track.gone_at, track.gone_within_s)
    earlier, later = split(traffic.copies, closed_at)
    predicted = None
    if traffic.lost_at is not None and _rule_applies(watched):
        predicted = after_close(forecast, earlier)
    orphan = Orphan(closed_at, gone_at, within_s, fate.cause, later, predicted, traffic.lost_at)
    return replace(orphan, predicted=None) if _healed_first(orphan, watched) else orphan


def split(copies: Sequence[Classified], closed_at: float) -> tuple[tuple[Classified, ...], tuple[Classified, ...]]:
    """The copies that left by the close, and those after it."""
    early = tuple(c for c in copies if c.segment.time_s <= closed_at)
    return early, tuple(copies[len(early) :])


def _rule_applies(watched: Watched) -> bool:
    """Whether the path is dark as the rule has it: by an open way data may come, which ends an orphan at once."""
    return watched.fault.direction is Cut.BOTH and watched.fault.placement is not Placement.OWN_OUTPUT


def _healed_first(orphan: Orphan, watched: Watched) -> bool:
    """Whether the path came back to it before its end, or before that was due."""
    if watched.healed is None or orphan.window is None:
        return False
    healed_at = watched.healed.began_at
    return healed_at <= orphan.window[1] and (orphan.gone_at is None or healed_at < orphan.gone_at)


def after_close(forecast: EndForecast, earlier: Sequence[Classified]) -> GiveUp | None:
    """What the branch of a closed socket says once it is known after which copies it was closed.

    Args:
        forecast: Stated before the cut.
        earlier: The copies that had left by then.

    Returns:
        Seconds from the first lost send, copies from the close on; None where there is no such branch.
    """
    closing = forecast.closing
    if closing is None or closing.window_s is None:
        return None
    sent, passed = len(earlier), len(earlier)
    planned = forecast.sending.copy_times
    if earlier and planned and planned[0].kind is CopyKind.TAIL_LOSS_PROBE and earlier[0].trigger is not Trigger.PROBE:
        passed += 1  # The probe carried new data and was no copy.
    following = planned[passed].window_s if passed < len(planned) else forecast.sending.window_s
    least, most = closing.window_s
    if following is not None:
        least, most = max(least, following[0]), max(most, following[1])
    fewest, highest = closing.copies
    return replace(
        closing,
        window_s=(least, most),
        copies=(max(fewest - sent, 0), None if highest is None else max(highest - sent, 0)),
    )


def orphans_aftermath(orphan: Orphan, forecast: EndForecast, traffic: Traffic, late_s: float) -> Aftermath:
    """Given all copies, was the end the first expiry after the close at or past the bound?

    Args:
        orphan: Gone.
        forecast: What was said of the end before the cut, of its closing too.
        traffic: What it sent.
        late_s: How late its end may have been dated.
    """
    origin, copies, situation = orphan.anchor or 0.0, traffic.copies, forecast.closing_situation
    assert orphan.gone_at is not None
    assert situation is not None
    closed_s = orphan.closed_at - origin
    # Before the cut nobody knew when the FIN would leave, now it is known whether that could move the first copy.
    moved = forecast.sending_situation.writes_on or _fin_before_copies(orphan, traffic)
    situation = replace(situation, writes_on=moved and closed_s > 0)
    return judge(
        situation,
        Observed(
            copies_s=tuple(c.segment.time_s - origin for c in copies),
            death_s=orphan.gone_at + orphan.within_s - origin,
            loss_probe=bool(copies) and copies[0].trigger is Trigger.PROBE,
            tolerance_s=late_s + 2 * orphan.within_s,
            closed_s=closed_s,
        ),
    )


def _fin_before_copies(orphan: Orphan, traffic: Traffic) -> bool:
    """Whether the FIN left between the first lost send and its first copy: a write, which sets that one's timer anew.

    The FIN of an earlier shutdown, where there was one: the close sent none then.
    """
    fin_at = orphan.closed_at if traffic.fin_at is None else min(traffic.fin_at, orphan.closed_at)
    return fin_at > (orphan.anchor or 0.0) and not split(traffic.copies, fin_at)[0]
