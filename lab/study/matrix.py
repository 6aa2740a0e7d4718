"""All sessions side by side, in testbeds of their own: waiting is what a session mostly does.

Each session is on the disk as soon as it is over. One that is INVALID because the machine was too busy is no result: it
is run again, and that is counted, and listed with its reason. Nothing else is repeated: what is out of its range, a
defect, and what is INVALID for a reason of its own stay as they are.
"""

import concurrent.futures
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lab.core.errors import InvalidRun
from lab.run.sidebyside import SideBySide
from lab.study.judgement import Row, Session, judge_row
from lab.study.results import Results
from lab.study.scenario import Scenario
from lab.study.scenarios import SCENARIOS

JOBS = 100
"""Sessions at once: those of the study and of the new scenarios begin without waiting for one another."""

STARTS_AT_ONCE = max(os.cpu_count() or 1, 2)
"""Testbeds that start at once, one per core; starting is what costs processor time."""

SWITCH_S = 0.001
"""How long a thread keeps the interpreter from the others. With Python's 5 ms, three calls to an agent beside ten
threads that compute take 350 ms; with 1 ms, 54: a cut is some calls, and beside it others' captures are read."""

TRIES_AGAIN = 4
"""How often a session that the machine disturbed is run again: each time beside half as many, 100 to 6 of them."""


@dataclass(frozen=True, slots=True)
class Task:
    """One session to be run."""

    scenario: Scenario
    number: int
    """From 0."""

    real: bool

    @property
    def longest_s(self) -> float:
        """Wall seconds that it takes, roughly."""
        return self.scenario.variant(self.number, real=self.real).longest_s

    @property
    def name(self) -> str:
        """Of its folder: R1-2 is the second session of R1."""
        return f"{self.scenario.id}-{self.number + 1}"


class Perform(Protocol):
    """Runs one session."""

    def __call__(
        self, task: Task, *, out: Path, gate: AbstractContextManager[object], stop: threading.Event
    ) -> Session:
        """Run it; an INVALID session says why.

        Args:
            task: What to run.
            out: For its artefacts.
            gate: Held while testbed and programs start.
            stop: Ends it early.
        """


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a matrix is."""

    done: int
    total: int
    again: int
    """Tries that were INVALID."""

    latest: Session | None = None
    """The session that was just finished."""


def plan(
    scenarios: Iterable[Scenario], *, n: int | None = None, real: bool = False, full: bool = False
) -> tuple[Task, ...]:
    """The sessions of these scenarios, the longest first.

    Args:
        scenarios: What to run.
        n: Sessions of each; None for its own number.
        real: With real waits, but for those that take a quarter of an hour.
        full: With those too, and every session of the scenarios that have hundreds.
    """
    tasks = [
        Task(scenario, number, full or (real and not scenario.minutes))
        for scenario in scenarios
        for number in range(n or (scenario.n if full else scenario.brief or scenario.n))
    ]
    return tuple(sorted(tasks, key=lambda task: -task.longest_s))


class Matrix:
    """Runs sessions side by side.

    Args:
        tasks: In the order in which they are started.
        perform: Runs one.
        out: Folder of the whole study; ``results`` and a folder per session go into it.
        jobs: Sessions at once, at most: fewer while the machine disturbs them.
        tell: Called as sessions come to their ends, from their threads, one at a time.
        gate: Held while a testbed starts; None for one of the matrix's own.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        perform: Perform,
        out: Path,
        *,
        jobs: int = JOBS,
        tell: Callable[[Progress], None] = lambda _: None,
        gate: AbstractContextManager[object] | None = None,
    ) -> None:
        self.tasks = tuple(tasks)
        self.results = Results(out / "results")
        self._perform = perform
        self._out = out
        self._tell = tell
        self._gate = threading.BoundedSemaphore(STARTS_AT_ONCE) if gate is None else gate
        self._side_by_side = SideBySide(jobs)
        self._stop = threading.Event()
        self._alone = threading.Lock()
        self._done = self._again = 0
        self._pool = concurrent.futures.ThreadPoolExecutor(max(jobs, 1), thread_name_prefix="session")
        self._running: dict[Task, concurrent.futures.Future[Session]] = {}
        self._switch_s = sys.getswitchinterval()

    def start(self) -> "Matrix":
        """Queue every session."""
        sys.setswitchinterval(min(SWITCH_S, self._switch_s))
        self._running = {task: self._pool.submit(self._run, task) for task in self.tasks}
        return self

    def row(self, scenario: Scenario) -> Row:
        """The row of a scenario, once its last session is over.

        Raises:
            LabError: a session could not be run at all: nothing here works, or it is not supported.
        """
        running = [(task, future) for task, future in self._running.items() if task.scenario is scenario]
        done = sorted((future.result() for _, future in running), key=lambda session: session.number)
        return judge_row(scenario, done, real=any(task.real for task, _ in running))

    def rows(self) -> list[Row]:
        """All rows, in the order of the scenarios' own table, once everything is over."""
        return [self.row(scenario) for scenario in dict.fromkeys(task.scenario for task in self._in_order())]

    def finished(self) -> list[Session]:
        """What is over by now; for an interrupted study."""
        return [
            future.result()
            for future in self._running.values()
            if future.done() and not future.cancelled() and future.exception() is None
        ]

    def close(self) -> None:
        """End what still runs; what is over stays on the disk."""
        self._stop.set()
        self._side_by_side.close()
        self._pool.shutdown(cancel_futures=True)
        sys.setswitchinterval(self._switch_s)

    def _in_order(self) -> list[Task]:
        places = {name: place for place, name in enumerate(SCENARIOS)}
        return sorted(self.tasks, key=lambda task: (places.get(task.scenario.id, len(places)), task.number))

    def _run(self, task: Task) -> Session:
        again: list[str] = []
        while True:
            out = self._out / "sessions" / (task.name if not again else f"{task.name}-again{len(again)}")
            with self._side_by_side.slot() as slot:
                began = time.monotonic()
                tried = self._once(task, out)
                took_s = round(time.monotonic() - began, 3)
                slot.disturbed = disturbed = tried.disturbed and not tried.valid
            session = dataclasses.replace(tried, again=tuple(again), took_s=took_s, folder=out.name)
            if not disturbed or len(again) >= TRIES_AGAIN or self._stop.is_set():
                break
            again.append("; ".join(session.invalid))
            self._count(again=1)
        self.results.add(session)
        self._count(done=1, latest=session)
        return session

    def _once(self, task: Task, out: Path) -> Session:
        """One try; what goes wrong in it without being anybody's fault makes it INVALID."""
        try:
            return self._perform(task, out=out, gate=self._gate, stop=self._stop)
        except InvalidRun as error:
            return Session(task.scenario.id, task.number, task.real, {}, invalid=(error.message,))

    def _count(self, *, done: int = 0, again: int = 0, latest: Session | None = None) -> None:
        with self._alone:
            self._done += done
            self._again += again
            self._tell(Progress(self._done, len(self.tasks), self._again, latest))
