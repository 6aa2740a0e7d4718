"""What a session left behind: the events of its programs, and where the path was cut the lab's record of that."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.live.server import bookings
from lab.report.record import Outcome, Record
from lab.study.commands import BOOKINGS
from lab.study.reading import Observed, OnTheWire, Said
from lab.study.scenario import Scenario

AFTERMATH = {"server-rule"}
"""The check of the server's single waits after the fact. A thirtyfold kernel's first waits are a few ticks of its
timers, which is finer than this rule; what it did in all is checked as ever, and so is the client, whose kernel keeps
its pace."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session that was performed; one that is INVALID proves nothing and may be performed again."""

    scenario: Scenario
    number: int
    """From 0."""

    real: bool
    """With real waits."""

    folder: Path
    """The programs' output, the captures, and where the path was cut a whole run folder."""

    assistant: tuple[Said, ...]
    server: tuple[Said, ...]
    proxy: tuple[Said, ...] = ()
    record: Record | None = None
    """Of the cut; None where nothing was cut."""

    cut_at: float | None = None
    """CLOCK_MONOTONIC seconds; None where nothing was cut."""

    marks: tuple[tuple[str, float, float], ...] = ()
    """What the assistant asked for: name, when it said so, and when it was done, CLOCK_MONOTONIC seconds."""

    invalid: str | None = None
    """Why it proves nothing."""

    disturbed: bool = False
    """Whether that is what a busy machine does."""

    @property
    def observed(self) -> Observed:
        """What its quantities are read from."""
        return Observed(
            loss=self.scenario.loss,
            assistant=self._with_deeds(),
            server=self.server,
            wire=self._wire,
            stored=self._stored,
            kernel_factor=self.scenario.variant(self.number, real=self.real).kernel.factor,
        )

    def _with_deeds(self) -> tuple[Said, ...]:
        """The assistant's events, each mark with the instant at which it was obeyed: a loss begins then."""
        left = list(self.marks)
        events: list[Said] = []
        for event in self.assistant:
            mark = next((each for each in left if event["event"] == "mark" and each[0] == event.get("name")), None)
            if mark is not None:
                left.remove(mark)
            events.append(event if mark is None else {**event, "done_at": mark[2]})
        return tuple(events)

    @property
    def _wire(self) -> OnTheWire | None:
        if self.record is None or self.cut_at is None:
            return None
        server = self.record.observation.server
        return OnTheWire(self.cut_at, server.first_lost_s, server.copies or 0, server.last_copy_s)

    @property
    def _stored(self) -> int | None:
        """What the bookings' file itself holds, which is the truth whatever the assistant says of it."""
        told = bookings.report(self.folder / BOOKINGS)
        return None if told is None else told["count"]

    @property
    def refuted(self) -> str | None:
        """What the lab's record found that was not as predicted."""
        if self.record is None or self.record.outcome is not Outcome.REFUTED:
            return None
        lapsed = self.scenario.variant(self.number, real=self.real).kernel.factor != 1
        if lapsed and {check.name for check in self.record.checks if not check.ok} <= AFTERMATH:
            return None
        return self.record.reason


def events_of(texts: Iterable[str]) -> tuple[Said, ...]:
    """The events among a program's lines: JSON objects that have an instant and a name."""
    found = []
    for text in texts:
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str) and isinstance(event.get("at"), int | float):
            found.append(event)
    return tuple(found)
