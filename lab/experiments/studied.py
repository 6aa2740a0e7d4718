"""The study's sessions among the experiments: one matrix for all tests that ask for a row of it."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.run.backend import opener
from lab.study.judgement import Row
from lab.study.matrix import Matrix, plan
from lab.study.performing import Performer
from lab.study.scenario import Scenario

BACKEND = "netns"
"""Where sessions run: a hundred of them would need a hundred sets of containers."""

SIDE_BY_SIDE = 40
"""Sessions at once. With all hundred at once, captures dropped packets and marks came late on two cores."""


class Studied:
    """Runs the sessions of some scenarios, each session once, whichever tests ask for them.

    Args:
        scenarios: Whose sessions are run.
        folder: For their artefacts.
        after: Returns when they may begin. Two cores date other experiments' deaths to milliseconds, and cannot play a
            hundred voices beside that.
        full: With real waits, and every session of the scenarios that have hundreds.
    """

    def __init__(
        self, scenarios: Sequence[Scenario], folder: Path, after: Callable[[], None], *, full: bool = False
    ) -> None:
        self.folder = folder
        performer = Performer(opener(BACKEND), BACKEND)
        self._matrix = Matrix(plan(scenarios, full=full), performer, folder, jobs=SIDE_BY_SIDE)
        self._after = after
        self._started = threading.Event()
        threading.Thread(target=self._start, name="studied", daemon=True).start()

    def row(self, scenario: Scenario) -> Row:
        """The row of a scenario, once its sessions are over.

        Raises:
            LabError: they could not be run.
        """
        self._started.wait()
        return self._matrix.row(scenario)

    def again(self) -> dict[str, list[str]]:
        """Per session that was INVALID and run again, why."""
        if not self._started.is_set():
            return {}
        return {
            f"{each.scenario}, session {each.number + 1}": list(each.again)
            for each in self._matrix.finished()
            if each.again
        }

    def close(self) -> None:
        """End what still runs."""
        self._matrix.close()
        self._started.set()

    def _start(self) -> None:
        try:
            self._after()
            if not self._started.is_set():
                self._matrix.start()
        finally:
            self._started.set()
