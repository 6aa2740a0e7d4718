"""Runs the collected experiments side by side.

Waiting is what an experiment mostly does, so all of them wait together: every test that has a ``spec`` parameter is
started when collection ends, in testbeds of its own, and its ``record`` fixture waits for that one run.
"""

import concurrent.futures
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, Unsupported
from lab.experiments import equivalence
from lab.experiments.studied import BACKEND, Studied
from lab.experiments.table import as_table
from lab.report.record import Record
from lab.run.backend import choose, opener
from lab.run.runner import Run
from lab.run.sidebyside import SideBySide
from lab.run.spec import RunSpec
from lab.study.judgement import Row
from lab.study.scenario import Scenario

SIDE_BY_SIDE = 36
"""Testbeds at once, at most. Two cores date every death to 20 ms with this many, and a machine that does not follow has
fewer; LAB_SIDE_BY_SIDE changes it."""

CONTAINERS_SIDE_BY_SIDE = 12
"""The same in containers: an engine has some thirty subnets to give, and a testbed takes two."""

STARTS_AT_ONCE = {"netns": 3, "docker": 2}
"""Testbeds that start at once; starting is what costs processor time, and of containers a hundred times as much."""

TRIES_AGAIN = 3
"""How often a run that could not prove itself is done again: each time beside half as many, 36 to 4 of them."""


class Batch:
    """All runs of a session on one backend.

    Args:
        folder: For their artefacts.
        backend: netns or docker.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder = folder
        self._open = opener(backend)
        self._backend = backend
        self._stop = threading.Event()
        usual = SIDE_BY_SIDE if backend == "netns" else CONTAINERS_SIDE_BY_SIDE
        width = int(os.environ.get("LAB_SIDE_BY_SIDE", usual))
        self._pool = concurrent.futures.ThreadPoolExecutor(width, thread_name_prefix="experiment")
        self._side_by_side = SideBySide(width)
        self._gate = threading.BoundedSemaphore(STARTS_AT_ONCE[backend])
        self.again: dict[str, list[str]] = {}
        """Per test, why earlier tries of it were INVALID."""
        self._runs: dict[str, concurrent.futures.Future[Record]] = {}
        self._folders: dict[str, Path] = {}

    def start(self, name: str, spec: RunSpec) -> None:
        """Queue a run."""
        out = self._folder / "".join(c if c.isalnum() or c in "-." else "_" for c in name.rpartition("/")[2])
        self._folders[name] = out
        self._runs[name] = self._pool.submit(self._run, name, spec, out)

    def _run(self, name: str, spec: RunSpec, out: Path) -> Record:
        """A run that was disturbed says INVALID, which is no result: it is done again, and that is reported."""
        first = out
        while True:
            run = Run(spec, self._open, out=out, stop=self._stop, start_gate=self._gate, backend=self._backend)
            with self._side_by_side.slot() as slot:
                record = run.execute()
                slot.disturbed = record.disturbed
            if not record.disturbed or len(self.again.get(name, [])) >= TRIES_AGAIN:
                return record
            self.again.setdefault(name, []).append(record.reason or "")
            out = self._folders[name] = first.with_name(f"{first.name}-again{len(self.again[name])}")

    def record(self, name: str) -> Record:
        """The record of a run, when it is there."""
        return self._runs[name].result()

    def done(self) -> dict[str, Record]:
        """The records of all runs that came to an end, by test."""
        return {
            name: run.result()
            for name, run in self._runs.items()
            if run.done() and not run.cancelled() and run.exception() is None
        }

    def folder(self, name: str) -> Path:
        """Where the run's artefacts are."""
        return self._folders[name]

    def wait(self) -> None:
        """Return when all of them are over, well or not."""
        concurrent.futures.wait(self._runs.values())

    def close(self) -> None:
        """End every run that still goes on."""
        self._stop.set()
        self._side_by_side.close()
        self._pool.shutdown(cancel_futures=True)


BATCH = pytest.StashKey[Batch]()

TWIN = pytest.StashKey[Batch]()
"""The same experiments in containers, where both backends are compared."""

STUDIED = pytest.StashKey[Studied]()
"""The study's sessions."""

NOT_READY = pytest.StashKey[EnvironmentNotReady]()
"""Why no backend works here."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start every selected experiment."""
    if session.config.option.collectonly:
        return
    specs = [(item.nodeid, _spec(item)) for item in session.items]
    scenarios = list(dict.fromkeys(each for item in session.items for each in _scenarios(item)))
    if not any(spec for _, spec in specs) and not scenarios:
        return
    try:
        kinds = _backends(session.config)
    except EnvironmentNotReady as error:
        session.config.stash[NOT_READY] = error
        return
    for key, kind in zip((BATCH, TWIN), kinds, strict=False):
        batch = session.config.stash[key] = Batch(_folder(session.config, kind), kind)
        for name, spec in specs:
            if spec is not None:
                batch.start(name, spec)
    if scenarios and BACKEND in kinds:
        folder = _folder(session.config, "study")
        session.config.stash[STUDIED] = Studied(scenarios, folder, session.config.stash[BATCH].wait)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what still runs."""
    for key in (BATCH, TWIN):
        batch = session.config.stash.get(key, None)
        if batch is not None:
            batch.close()
    studied = session.config.stash.get(STUDIED, None)
    if studied is not None:
        studied.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which runs were disturbed and done again: INVALID is neither a pass nor a failure."""
    batch, twin = config.stash.get(BATCH, None), config.stash.get(TWIN, None)
    if batch is not None and config.getoption("lab_table", None) is not None:
        config.option.lab_table.write_text(as_table(batch.done()), encoding="utf-8")
        terminalreporter.line(f"predicted and observed: {config.option.lab_table}")
    if batch is not None and twin is not None:
        others = twin.done()
        both = {name: (record, others[name]) for name, record in batch.done().items() if name in others}
        terminalreporter.section("namespaces and containers compared")
        terminalreporter.line(equivalence.summary(both))
        if (page := config.getoption("lab_equivalence", None)) is not None:
            page.write_text(equivalence.as_table(both), encoding="utf-8")
            terminalreporter.line(f"each of them: {page}")
    again = {name: reasons for one in (batch, twin) if one is not None for name, reasons in one.again.items()}
    studied = config.stash.get(STUDIED, None)
    again |= {} if studied is None else studied.again()
    if again:
        terminalreporter.section("INVALID and run again")
        for name, reasons in again.items():
            terminalreporter.line(f"{name}: {'; '.join(reasons)}")


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    """The record of this test's run; its folder is named in the failure.

    Where both backends are compared, the one in namespaces, once the other one is found to be equivalent.
    """
    try:
        if (error := request.config.stash.get(NOT_READY, None)) is not None:
            raise error
        record = request.config.stash[BATCH].record(request.node.nodeid)
        twin = request.config.stash.get(TWIN, None)
        if twin is not None:
            assert equivalence.differences(record, twin.record(request.node.nodeid)) == []
        return record
    except Unsupported as error:
        pytest.skip(f"unsupported here: {error}")
    except EnvironmentNotReady as error:
        # On a developer's machine a missing backend is said; in CI it would hide everything.
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture
def studied(request: pytest.FixtureRequest) -> Studied:
    """The study's sessions."""
    if (error := request.config.stash.get(NOT_READY, None)) is not None:
        if os.environ.get("CI") == "true":
            raise error
        pytest.skip(str(error))
    if (found := request.config.stash.get(STUDIED, None)) is None:
        pytest.skip("the study's sessions run in namespaces; `lab live run --backend docker` runs one in containers")
    return found


@pytest.fixture
def row(scenario: Scenario, studied: Studied) -> Row:
    """The row of this test's scenario, when its sessions are over."""
    try:
        return studied.row(scenario)
    except Unsupported as error:
        pytest.skip(f"unsupported here: {error}")


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    """The run folder of this test."""
    return request.config.stash[BATCH].folder(request.node.nodeid)


def _backends(config: pytest.Config) -> tuple[str, ...]:
    """Where the experiments run; which one ``auto`` came to is printed, and why.

    Raises:
        EnvironmentNotReady: ``auto``, and neither kind works here.
    """
    if config.option.backend == "both":
        return equivalence.BACKENDS
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return (choose(config.option.backend, reporter.write_line),)


def _spec(item: pytest.Item) -> RunSpec | None:
    callspec: Any = getattr(item, "callspec", None)
    spec = None if callspec is None else callspec.params.get("spec")
    return spec if isinstance(spec, RunSpec) else None


def _scenarios(item: pytest.Item) -> list[Scenario]:
    """The scenarios that a test is about."""
    callspec: Any = getattr(item, "callspec", None)
    return [] if callspec is None else [each for each in callspec.params.values() if isinstance(each, Scenario)]


def _folder(config: pytest.Config, backend: str) -> Path:
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]  # noqa: SLF001 - fixtures come too late here
    path: Path = factory.mktemp(f"runs-{backend}", numbered=False)
    return path
