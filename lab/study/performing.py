"""From a session that was performed to its quantities."""

import dataclasses
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from lab.run.runner import Opener
from lab.study.judgement import Session
from lab.study.matrix import Task
from lab.study.outcome import read
from lab.study.proofs import doubts, stuck
from lab.study.reading import Observed, OnTheWire, Said
from lab.study.running import perform
from lab.study.session_record import SessionRecord


@dataclasses.dataclass(frozen=True, slots=True)
class Performer:
    """Performs a task of the matrix in a testbed of its own."""

    open_testbed: Opener
    backend: str = "netns"
    text: bool = False
    """The assistant types instead of speaking."""

    frames: bool = False
    """The server writes down every frame."""

    seen: Callable[[Task, SessionRecord], None] = lambda _task, _record: None
    """Shown every session, INVALID ones too."""

    def __call__(
        self, task: Task, *, out: Path, gate: AbstractContextManager[object], stop: threading.Event
    ) -> Session:
        """Perform it; see ``matrix.Perform``."""
        record = perform(
            task.scenario,
            task.number,
            open_testbed=self.open_testbed,
            out=out,
            real=task.real,
            gate=gate,
            stop=stop,
            backend=self.backend,
            text=self.text,
            frames=self.frames,
        )
        self.seen(task, record)
        return session_of(record)


def session_of(record: SessionRecord) -> Session:
    """The quantities of a session, and whether it proved itself."""
    seen = observed(record)
    said = () if record.invalid is None else (record.invalid,)
    return Session(
        scenario=record.scenario.id,
        number=record.number,
        real=record.real,
        values=read(seen),
        # What the run says of itself comes first; where it came to no end, the rest follows from that.
        invalid=said or doubts(seen),
        stuck=stuck(seen),
        refuted=record.refuted,
    )


def observed(record: SessionRecord) -> Observed:
    """The session as the readers of quantities take it."""
    return Observed(
        loss=record.scenario.loss,
        assistant=_with_deeds(record),
        server=record.server,
        wire=on_the_wire(record),
        kernel_factor=record.scenario.variant(record.number, real=record.real).kernel.factor,
    )


def on_the_wire(record: SessionRecord) -> OnTheWire | None:
    """What the lab's record shows of the server's end; None where nothing was cut."""
    if record.record is None or record.cut_at is None:
        return None
    end = record.record.observation.server
    return OnTheWire(record.cut_at, end.first_lost_s, end.copies or 0, end.last_copy_s)


def _with_deeds(record: SessionRecord) -> tuple[Said, ...]:
    """The assistant's events, its marks with the instant at which they were obeyed: the loss begins then."""
    left = list(record.marks)
    events: list[Said] = []
    for event in record.assistant:
        mark = next((each for each in left if event["event"] == "mark" and each[0] == event.get("name")), None)
        if mark is not None:
            left.remove(mark)
        events.append(event if mark is None else {**event, "done_at": mark[2]})
    return tuple(events)
