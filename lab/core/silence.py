"""Silence: a stretch in which one side kept sending into nothing, and what passed meanwhile.

A vantage point sees what its own side sends and what comes back. Where nothing comes back it cannot tell which
direction is dead, and neither does this module: the direction is then ``both``, and not ``certain``.
"""

import enum
from dataclasses import dataclass, field

from lab.core.fault import Cut
from lab.core.flow import Direction
from lab.core.segment_class import Classified, Trigger

_ALWAYS_KEPT = 3
"""Copies that an episode remembers although its flow no longer lists them."""

ANSWER_S = 1.0
"""A capture must go on this long after a copy before the lack of an answer means anything: the initial retransmission
timeout, so the longest round trip that TCP expects before it knows better (RFC 6298 section 2)."""


class Kind(enum.Enum):
    """What the sender waited for."""

    ANSWER = "answer"
    """An acknowledgment of data, SYN or FIN."""

    KEEPALIVE = "keepalive"
    WINDOW = "window"
    """An answer to window probes."""


@dataclass(slots=True)
class Episode:
    """One sender repeating itself, from its first unanswered sending to the answer or the end of the capture."""

    direction: Direction
    """Which way it sends."""

    kind: Kind
    since: float
    """Time of the first unanswered sending."""

    last_heard_at: float | None
    """When the other side was last seen before; None for never."""

    awaited: int
    """Relative sequence number; the answer acknowledges more than this."""

    heard: int
    """Acknowledgment number that the sender gave with its first copy; one that rises shows that it hears."""

    copies: list[Classified] = field(default_factory=list)
    deaf: bool = True
    """Whether every copy carried only what had been acknowledged already, as seen here."""

    passed_by: int = 0
    """Segments of the other side that were seen meanwhile and did not answer."""

    healed_at: float | None = None
    watched_until: float = 0.0
    """Where it was not healed: when the flow was last watched."""

    highest: int = 0
    """One past the highest relative sequence number that was copied."""

    def add(self, copy: Classified, *, needless: bool, listed: bool) -> None:
        """Enter a copy or a probe.

        Args:
            copy: The next one.
            needless: Whether all of it had been acknowledged, as seen here.
            listed: Whether there is memory left for it.
        """
        self.deaf = self.deaf and needless
        self.highest = max(self.highest, copy.end)
        if listed or len(self.copies) < _ALWAYS_KEPT:
            self.copies.append(copy)

    def correct(self, copy: Classified) -> None:
        """Replace a copy by its later verdict."""
        for n in range(len(self.copies) - 1, -1, -1):
            if self.copies[n].number <= copy.number:
                if self.copies[n].number == copy.number:
                    self.copies[n] = copy
                return

    @property
    def timer_copies(self) -> int:
        """Copies by timeout, and probes that a timer sent."""
        return sum(c.trigger is not Trigger.PROBE for c in self.copies)

    @property
    def last_at(self) -> float:
        """Time of the latest copy."""
        return self.copies[-1].segment.time_s

    @property
    def is_silence(self) -> bool:
        """Whether it is more than ordinary loss: two timeouts in a row, or one that was never answered.

        Probes that are answered later need three: Linux answers them at most twice a second
        (``tcp_invalid_ratelimit``), so that a live receiver leaves some unanswered.
        """
        if self.healed_at is None:
            enough = 1 if self.watched_until - self.last_at >= ANSWER_S else 2
        else:
            enough = 2 if self.kind is Kind.ANSWER else 3
        return self.timer_copies >= enough


@dataclass(frozen=True, slots=True)
class Silence:
    """When nothing got through, and which way."""

    since: float
    """Time of the first sending that got no answer."""

    direction: Cut
    """Which direction was dead; ``both`` where neither gave a sign of life."""

    certain: bool
    """Whether the capture shows that the other direction lived, or that both were dead."""

    healed_at: float | None
    """When the dead direction was first seen to live again, None for never."""

    last_heard_at: float | None
    """When the side that fell silent was last seen before, None for never."""


def main_silence(episodes: list[Episode]) -> Episode | None:
    """The episode that matters: one that lasts to the end, else the longest; None where none is a silence."""
    silences = [e for e in episodes if e.is_silence]
    return max(silences, key=lambda e: (e.healed_at is None, (e.healed_at or e.last_at) - e.since), default=None)


def silence_of(episodes: list[Episode]) -> Silence | None:
    """The main silence of a flow and which direction it was in."""
    main = main_silence(episodes)
    if main is None:
        return None
    until = main.healed_at or float("inf")
    others = [e for e in episodes if e is not main and e.since < until and (e.healed_at or float("inf")) > main.since]
    direction, certain = _direction(main, others)
    along = [main, *(e for e in others if e.is_silence)]
    return Silence(min(e.since for e in along), direction, certain, main.healed_at, main.last_heard_at)


def _direction(main: Episode, others: list[Episode]) -> tuple[Cut, bool]:
    dead: set[Direction] = set()
    for episode in (main, *others):
        if episode.deaf and episode.kind is Kind.ANSWER:
            # The answer was seen here, and never reached the one who waits for it.
            dead.add(episode.direction.opposite)
        elif episode.passed_by:
            # The other side talks on without having received what is repeated.
            dead.add(episode.direction)
    if dead == {Direction.FORWARD}:
        return Cut.FORWARD, True
    if dead == {Direction.RETURN}:
        return Cut.RETURN, True
    return Cut.BOTH, bool(dead)
