"""From a task of the matrix to a session with its quantities, by a performance in a testbed."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from lab.run.runner import Opener
from lab.study.commands import Modules
from lab.study.judgement import Session
from lab.study.matrix import Task
from lab.study.outcome import read
from lab.study.proofs import defect, doubts, lateness, stuck
from lab.study.running import perform
from lab.study.session_record import SessionRecord


@dataclass(frozen=True, slots=True)
class Performer:
    """Performs a matrix's tasks on one backend; fulfils ``matrix.Perform``."""

    open_testbed: Opener
    backend: str = "netns"
    """What ``open_testbed`` brings up."""

    modules: Modules = field(default_factory=Modules)
    text: bool = False
    """Assistants type instead of speaking."""

    frames: bool = False
    """Servers write down every frame."""

    seen: Callable[[Task, SessionRecord], None] = lambda _task, _performed: None
    """Shown every session, INVALID ones too, in the thread that performed it."""

    def __call__(
        self, task: Task, *, out: Path, gate: AbstractContextManager[object], stop: threading.Event
    ) -> Session:
        """Run one session; an INVALID one says why."""
        performed = perform(
            task.scenario,
            task.number,
            open_testbed=self.open_testbed,
            out=out,
            real=task.real,
            gate=gate,
            stop=stop,
            backend=self.backend,
            modules=self.modules,
            text=self.text,
            frames=self.frames,
        )
        self.seen(task, performed)
        return judged(performed)


def judged(performed: SessionRecord) -> Session:
    """Its quantities, and why it proves nothing where it does."""
    seen = performed.observed
    late = lateness(seen)
    return Session(
        scenario=performed.scenario.id,
        number=performed.number,
        real=performed.real,
        values=read(seen),
        # What the performance says of itself comes first; where it came to no end, the doubts follow from that.
        invalid=(performed.invalid,) if performed.invalid else doubts(seen),
        stuck=stuck(seen),
        disturbed=performed.disturbed or bool(late),
        defect=defect(seen),
        refuted=performed.refuted,
        folder=performed.folder.name,
    )
