"""Many at once, on a machine that has other things to do: confirmed or INVALID, never refuted."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lab
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.run.spec import Action
from lab.testbed.netns import open_testbed
from tests.robustness.runs import spec

ROOT = Path(lab.__file__).parents[1]
BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.fixture
def load() -> Iterator[None]:
    """Two busy loops."""
    loops = [subprocess.Popen(BUSY) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(("count", "at_once"), [(60, 10)])
def test_under_load_a_run_is_confirmed_or_says_that_it_was_disturbed(tmp_path: Path, count: int, at_once: int) -> None:
    actions = (Action(0.05, "client", "send"), Action(0.30, "server", "send"))

    def one(number: int) -> tuple[Outcome, bool, str | None]:
        whole = spec(watch_s=None, actions=actions, sysctls=dict.fromkeys(("client", "server"), RETRIES))
        record = Run(whole, open_testbed, out=tmp_path / str(number)).execute()
        return record.outcome, record.disturbed, record.reason

    with ThreadPoolExecutor(at_once) as pool:
        seen = list(pool.map(one, range(count)))

    sys.stdout.write(f"{Counter(outcome.value for outcome, _, _ in seen)}\n")
    wrong = [each for each in seen if each[0] is not Outcome.CONFIRMED and not (each[0] is Outcome.INVALID and each[1])]
    assert wrong == []


RETRIES = {"net.ipv4.tcp_retries2": "3"}
"""A death after 1.5 s."""


@pytest.mark.slow
def test_two_demos_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    demos = [
        subprocess.Popen(
            [sys.executable, "-m", "lab", "demo", "--out", str(tmp_path / name)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in ("first", "second")
    ]

    assert {demo.wait(60) for demo in demos} <= {0, 3}


@pytest.mark.slow
def test_two_test_sessions_at_once_pass(tmp_path: Path) -> None:
    sessions = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "tests/testbed/netns/test_nodes.py",
                f"--basetemp={tmp_path / name}",
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        for name in ("first", "second")
    ]

    assert [session.wait(120) for session in sessions] == [0, 0]
