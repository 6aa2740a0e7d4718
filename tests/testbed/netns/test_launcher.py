import os
import subprocess
import sys
from pathlib import Path

from lab.testbed.netns import NetnsTestbed, launcher

PROGRAM = """
from lab.testbed.netns import NetnsTestbed
try:
    NetnsTestbed()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_library_that_cannot_be_loaded_is_reported_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "pyroute2.py").write_text("raise ImportError('broken on purpose')\n")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
    )

    assert done.stdout == ("EnvironmentNotReady pyroute2 cannot prepare links; its message is above. Fix: make setup\n")
    assert "broken on purpose" in done.stderr


def test_testbeds_of_a_process_share_a_fork_server() -> None:
    with NetnsTestbed():
        first = launcher._server
        with NetnsTestbed():
            assert launcher._server is first
    assert first is not None

    launcher.shut_down()
    launcher.shut_down()

    assert first._process.returncode == 0
    assert launcher._server is None
