"""Where the experiments run, and what is said where they cannot."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

WITHOUT_NAMESPACES = """
import pytest, sys
import lab.testbed.netns
from lab.core.errors import EnvironmentNotReady

def refuse(*_):
    raise EnvironmentNotReady("No namespaces here.", fix="the first fix")

lab.testbed.netns.open_testbed = refuse
sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", "lab/experiments/test_heal.py"]))
"""


def run_without_any_backend(**environment: str) -> "subprocess.CompletedProcess[str]":
    without_ci = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES],
        cwd=ROOT,
        env={**without_ci, "PYTHONPATH": str(ROOT), "DOCKER_HOST": "unix:///nonexistent.sock", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_without_any_backend_the_experiments_are_skipped_with_both_reasons() -> None:
    done = run_without_any_backend()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Embedded: No namespaces here. Containers: There is no Docker engine" in done.stdout
    assert "the first fix" in done.stdout


def test_with_ci_they_fail() -> None:
    done = run_without_any_backend(CI="true")

    assert done.returncode == 1
    assert "No backend works here" in done.stdout
