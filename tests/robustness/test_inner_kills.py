"""SIGKILL of any one process behind a run: the caller hears of it, soon, and never a confirmation."""

import os
import signal
import time
from pathlib import Path

import pytest

from lab.core.errors import InvalidRun
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.run.spec import Action
from tests.robustness.runs import outcome, own_processes, spec

LONGEST_S = 15.0
"""A run of a second, its start, and its end; far below the 30 s after which a call counts as stuck."""

VITAL = ("lab-firewall", "lab-keeper")
OTHERS = ("lab-forkserver", "lab-client", "lab-router", "lab-server", "lab-capture")


@pytest.mark.parametrize("name", [*VITAL, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_the_caller_hears_of_the_end_of_a_process_that_it_needs(tmp_path: Path, name: str) -> None:
    def kill(_: Run) -> None:
        (pid,) = own_processes(name)
        os.kill(pid, signal.SIGKILL)

    began = time.monotonic()
    seen, reason = outcome(spec(), tmp_path, at_cut=kill)

    assert seen is InvalidRun, reason
    assert "ended unexpectedly" in reason
    assert time.monotonic() - began < LONGEST_S
    assert '"invalid"' in (tmp_path / "record.json").read_text()


@pytest.mark.slow
def test_the_run_after_one_that_lost_its_services_is_whole_again(tmp_path: Path) -> None:
    def kill(_: Run) -> None:
        (pid,) = own_processes("lab-services")
        os.kill(pid, signal.SIGKILL)

    assert outcome(spec(), tmp_path / "first", at_cut=kill)[0] is InvalidRun
    seen, reason = outcome(spec(), tmp_path / "second")

    assert seen is Outcome.CONFIRMED, reason


@pytest.mark.parametrize("node", ["client", pytest.param("server", marks=pytest.mark.slow)])
def test_a_program_that_is_killed_from_outside_spoils_its_run(tmp_path: Path, node: str) -> None:
    def kill(run: Run) -> None:
        os.kill(run._programs[node].pid, signal.SIGKILL)

    seen, reason = outcome(spec(actions=()), tmp_path, at_cut=kill)

    assert seen is Outcome.INVALID
    assert "killed from outside" in reason


@pytest.mark.slow
def test_a_line_for_a_program_that_was_killed_is_an_invalid_run(tmp_path: Path) -> None:
    def kill(run: Run) -> None:
        os.kill(run._programs["client"].pid, signal.SIGKILL)

    seen, reason = outcome(spec(actions=(Action(0.3, "client", "send"),)), tmp_path, at_cut=kill)

    assert seen is InvalidRun
    assert reason == "The client was to be told 'send'; its program has ended with status -9."


@pytest.mark.slow
def test_a_bystander_that_is_killed_spoils_the_run(tmp_path: Path) -> None:
    def kill(run: Run) -> None:
        ours = {process.pid for process in run._programs.values()}
        for pid in own_processes("client"):
            if pid not in ours:
                os.kill(pid, signal.SIGKILL)

    seen, reason = outcome(spec(), tmp_path, at_cut=kill)

    assert seen is Outcome.INVALID
    assert "bystander-unharmed" in reason
