"""Watches both ends after the cut until their fate is known.

An end's fate is known when its kernel has let the socket go, or when nothing is due: it is idle and its idle branch
says never. While something is due the watch waits for the end of the predicted window and a little longer, so that a
death that comes late is seen as late and not as missing.
"""

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.core.socket import SocketSample, TcpState
from lab.run.fate import orphaned
from lab.run.forecast import EndForecast, heard_at
from lab.run.patience import Patience
from lab.run.spec import ORPHANED
from lab.testbed.ports import SocketTrack

LOOK_S = 0.25
"""Between two looks at the tracks; the dating is the sampler's, in the node."""

LATE_S = 1.0
"""How much longer than its predicted window a death is waited for."""

SETTLE_S = 0.3
"""After the last fate is known: lets programs print what they were told."""

TELL_S = 5.0
"""How long a client is waited for that has not shown yet what it makes of its kernel's end, beside the user's limit."""

QUIET_WATCH_S = 5.0
"""How long to watch at least when the user set no limit."""


@dataclass(slots=True)
class EndWatch:
    """One end while it is watched."""

    name: str
    """client or server."""

    forecast: EndForecast
    track: Callable[[], SocketTrack]
    healed_at: float | None = None
    """When the path came back, CLOCK_MONOTONIC."""

    sent_at: float | None = None
    """When the data was sent that was first seen waiting for an acknowledgment after the cut."""

    seen: SocketTrack | None = None

    def due_until(self, cut_at: float) -> float | None:
        """Look once. Until when this end needs watching, CLOCK_MONOTONIC; None: its fate is known or nothing is due."""
        self.seen = self.track()
        if self.gone or self.let_go:
            return None
        if self.sent_at is None:
            self.sent_at = first_send(self.seen.samples, cut_at, held_back=self.forecast.held_back)
        if self.healed_at is not None and self.caught_up(self.healed_at):
            return None
        last = self.seen.samples[-1] if self.seen.samples else None
        due = self.forecast.due(self.sent_at, None if last is None else heard_at(last))
        return None if due is None else due[1] + LATE_S

    def caught_up(self, since: float) -> bool:
        """Whether a sample after that instant had nothing left to acknowledge."""
        last = self.seen.samples[-1] if self.seen is not None and self.seen.samples else None
        return last is not None and last.at > since and not awaits_acknowledgment(last)

    def copies_seen(self, cut_at: float) -> list[float]:
        """When the kernel's count of retransmissions was first seen to have grown, once per copy."""
        samples = [] if self.seen is None else [s for s in self.seen.samples if s.at >= cut_at]
        times: list[float] = []
        for before, after in itertools.pairwise(samples):
            times += [after.at] * max(after.total_retrans - before.total_retrans, 0)
        return times

    @property
    def gone(self) -> bool:
        """Whether the kernel has let the socket go."""
        return self.seen is not None and self.seen.gone_at is not None

    @property
    def let_go(self) -> bool:
        """Whether the program has closed a socket that the run expected to be open."""
        last = self.seen.samples[-1] if self.seen is not None and self.seen.samples else None
        return last is not None and self.forecast.state not in ORPHANED and orphaned(last)


def first_send(samples: Sequence[SocketSample], cut_at: float, *, held_back: bool = False) -> float | None:
    """When the end sent what was first seen waiting for an acknowledgment after the cut, CLOCK_MONOTONIC.

    The kernel tells when data was last sent. A FIN is no data, so its sending lies after the last look that saw nothing
    waiting; and what a socket tells that never sent any is no instant at all.

    Args:
        samples: Of one socket, in order.
        cut_at: CLOCK_MONOTONIC.
        held_back: What is queued waits for the peer's window, and not for an acknowledgment.
    """
    quiet_at = -math.inf
    for sample in samples:
        if not (sample.unacked if held_back else awaits_acknowledgment(sample)):
            quiet_at = sample.at
        elif sample.at >= cut_at:
            return max(sent_at(sample), quiet_at)
    return None


def sent_at(sample: SocketSample) -> float:
    """When the socket last sent data; before its first data that is the sample's own instant."""
    if sample.state is TcpState.SYN_SENT or not sample.unacked:
        return sample.at
    return sample.at - sample.last_data_sent_s


def awaits_acknowledgment(sample: SocketSample) -> bool:
    """Whether the end has sent, or wants to send, something that the other side has not acknowledged."""
    if sample.state in (TcpState.SYN_RECV, TcpState.NEW_SYN_RECV):
        return True
    return sample.state is not TcpState.LISTEN and (sample.unacked > 0 or sample.send_queue > 0)


def watch(
    ends: Sequence[EndWatch],
    cut_at: float,
    longest_s: float | None,
    patience: Patience,
    *,
    do_what_is_due: Callable[[], None] = lambda: None,
    next_at: Callable[[], float | None] = lambda: None,
    on_look: Callable[[], None] = lambda: None,
    told: Callable[[], bool] = lambda: True,
    tell_s: float = TELL_S,
    outside: bool = False,
    wake: threading.Event | None = None,
    waits: Callable[[], bool] = lambda: False,
    end_at: Callable[[], float | None] = lambda: None,
) -> float:
    """Watch until every fate is known, or the user's time is over.

    Args:
        ends: Both ends, or the one that is not outside.
        cut_at: When the cut was done, CLOCK_MONOTONIC.
        longest_s: The user's limit from the cut; None watches as long as the predictions ask for.
        patience: Waits.
        do_what_is_due: Acts and heals; called before each look.
        next_at: When it has something to do next, CLOCK_MONOTONIC; None: nothing more.
        on_look: Called after each look; narrates.
        told: Whether the client has shown that it knows; waited for once no kernel has anything left to tell.
        tell_s: How long for, at most.
        outside: The other end's fate is nobody's to know: what it sends is watched for the whole of the user's time.
        wake: Set when something is due that was not foreseen; else looks come at their own pace.
        waits: Whether something is still to come that no clock tells: then no fate ends the watch.
        end_at: When the watch ends although nobody's time is over, CLOCK_MONOTONIC; None: not known yet.

    Returns:
        When the watch ended, CLOCK_MONOTONIC.
    """
    limit = None if longest_s is None else cut_at + longest_s
    least = cut_at + (QUIET_WATCH_S if limit is None else 0.0)
    while True:
        if wake is not None:
            wake.clear()
        do_what_is_due()
        dues = [due for due in (end.due_until(cut_at) for end in ends) if due is not None]
        on_look()
        now, ahead, end = patience.now(), next_at(), end_at()
        if any(at is not None and now >= at for at in (limit, end)):
            return now
        all_gone = not outside and all(end.gone or end.let_go for end in ends)
        nothing_due = limit is None and now >= least and now >= max(dues, default=now)
        if ahead is None and not waits() and (all_gone or nothing_due):
            patience.until(lambda: told() or None, _left(limit, now, tell_s), step_s=0.1)
            patience.pause(_left(limit, patience.now(), SETTLE_S))
            return patience.now()
        wake_at = min(at for at in (now + LOOK_S, limit, ahead, end) if at is not None)
        patience.pause(max(wake_at - now, 0.001), wake)


def _left(limit: float | None, now: float, wanted_s: float) -> float:
    return wanted_s if limit is None else max(min(wanted_s, limit - now), 0.0)
