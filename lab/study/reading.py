"""The events of one session, with the questions that quantities ask of them.

Instants are the programs' CLOCK_MONOTONIC; durations are session seconds, which run faster than the wall in a lapse.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.live.timelapse import Lapse, TimeMap
from lab.study.scenario import Loss, Mark

Said = Mapping[str, Any]
"""One event of a program: ``at`` (CLOCK_MONOTONIC seconds), ``event``, and its own fields."""

LOSSES = {mark.value for mark in (Mark.CUT, Mark.FREEZE, Mark.MOVE_ADDRESS)}
HEALS = {mark.value for mark in (Mark.HEAL, Mark.UNFREEZE)}


@dataclass(frozen=True, slots=True)
class OnTheWire:
    """What the captures show of the server's end of a flow that went dark."""

    cut_at: float
    """CLOCK_MONOTONIC seconds."""

    first_lost_s: float | None
    """The first segment with data that vanished, wall seconds from the cut."""

    copies: int
    last_copy_s: float | None
    """Wall seconds from the cut."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One session, as it was seen."""

    loss: Loss
    assistant: Sequence[Said]
    server: Sequence[Said] = ()
    wire: OnTheWire | None = None
    kernel_factor: float = 1.0
    """How many seconds of the study's TCP one second of this one stands for."""

    stored: int | None = None
    """Bookings in the assistant's file; None where that is out of reach."""


@dataclass(slots=True)
class Reading:
    """The events of one session, in order, with the questions that quantities ask of them."""

    seen: Observed
    time: TimeMap
    events: list[Said] = field(default_factory=list)

    def t(self, event: Said) -> float:
        """Session time; of a mark, when it was done."""
        return self.time.session(float(event.get("done_at", event["at"])))

    def named(self, *names: str, after: Said | None = None, before: Said | None = None) -> list[Said]:
        """Events of these names, within bounds."""
        low = float("-inf") if after is None else float(after["at"])
        high = float("inf") if before is None else float(before["at"])
        return [each for each in self.events if each["event"] in names and low <= float(each["at"]) < high]

    def first(self, *names: str, after: Said | None = None, before: Said | None = None) -> Said | None:
        """The first of them."""
        return next(iter(self.named(*names, after=after, before=before)), None)

    def between(self, begin: Said | None, end: Said | None) -> Iterator[float]:
        """Session seconds from one event to another, where both happened."""
        if begin is not None and end is not None:
            yield self.t(end) - self.t(begin)

    def episodes(self) -> list[tuple[Said, Said | None]]:
        """Each loss, and the next one."""
        begins = [
            each
            for each in self.events
            if each["event"] == "drop" or (each["event"] == "mark" and each.get("name") in LOSSES)
        ]
        return list(itertools.zip_longest(begins, begins[1:]))

    def asks_to_resume(self, attempt: object) -> bool:
        """Whether an attempt was made with a handle."""
        return any(
            each.get("attempt") == attempt and each.get("handle") is not None for each in self.named("connecting")
        )

    def answers_to_attempts(self, name: str, *, resume: bool) -> list[Said]:
        """Refusals or acceptances, of attempts to resume or of new sessions."""
        return [each for each in self.named(name) if self.asks_to_resume(each.get("attempt")) is resume]


def reading_of(seen: Observed) -> Reading:
    """The session's events in order, on the session's clock."""
    time = TimeMap()
    events = sorted(seen.assistant, key=lambda each: float(each["at"]))
    for each in events:
        if each["event"] == "lapse":
            time.enter(Lapse(float(each["since"]), float(each["factor"])))
    return Reading(seen, time, events)
