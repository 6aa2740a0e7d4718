"""Runs a test's body in user, network and PID namespaces of its own, with loopback up."""

import functools
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
LONGEST_S = 60.0


def isolated(test: Callable[[], None], *, nobody: bool = False) -> Callable[[], None]:
    """The test, run by a new Python in new namespaces; it fails with that Python's output.

    Args:
        test: Takes no arguments.
        nobody: Run it as an ordinary user, where the tests run as root.
    """

    @functools.wraps(test)
    def run() -> None:
        body = f"import {__name__} as here, {test.__module__} as it; here.run_and_exit(it.{test.__name__}.__wrapped__)"
        become, python = (AS_NOBODY, _python_of_nobody()) if nobody and os.geteuid() == 0 else ([], sys.executable)
        loopback = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        done = subprocess.run(
            [*become, *NAMESPACES, *loopback, python, "-W", "error", "-c", body],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"in its namespaces:\n{done.stdout}{done.stderr}", pytrace=False)
        sys.stdout.write(done.stdout)

    return run


def _python_of_nobody() -> str:
    """A Python like this one that an ordinary user may run; that of a virtual environment can lie in root's home."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}\n"
    ask = "import sys; print(*sys.version_info[:2], sep='.')"
    for python in (sys.executable, "/usr/bin/python3"):
        told = subprocess.run(
            [*AS_NOBODY, "sh", "-c", 'exec "$@"', "sh", python, "-c", ask], capture_output=True, text=True, check=False
        )
        if told.stdout == ours:
            return python
    pytest.skip("no Python here that an ordinary user may run")


def run_and_exit(test: Callable[[], None]) -> None:
    """Run the test and end the process at once: what it opened goes with the namespaces, nothing need be closed."""
    status = 0
    try:
        test()
    except BaseException:  # noqa: BLE001 - whatever it was, the parent shows it
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def drop_at_receiver(*matches: str) -> None:
    """Drop packets in INPUT, so that their sender believes that they arrived; nft expressions, beside earlier ones."""
    rules = "".join(f"add rule inet hole input {match} drop\n" for match in matches)
    chain = "add chain inet hole input { type filter hook input priority 0; }\n"
    subprocess.run(["nft", "-f", "-"], input=f"add table inet hole\n{chain}{rules}", text=True, check=True)


def heal() -> None:
    """Take back every drop."""
    subprocess.run(["nft", "flush", "chain", "inet", "hole", "input"], check=True)


def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until the condition holds.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} did not come true within {timeout_s} s")
        time.sleep(0.005)


def fork(program: Callable[[], None]) -> int:
    """Run the program in a child process; its process id."""
    pid = os.fork()
    if pid == 0:
        try:
            program()
        finally:
            os._exit(0)
    return pid
