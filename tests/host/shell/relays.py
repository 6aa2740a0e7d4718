"""A relay as a program, and what a test reads of it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from lab.host.shell.beside import END_S

TIMEOUT_S = 10.0
DEADLINE_S = 60.0
"""For a process that starts on a busy machine."""

START = """
import sys
from lab.host.programs.main import main
from lab.host.shell import beside
beside.END_S = {end_s}
sys.exit(main(sys.argv[1:]))
"""


@contextlib.contextmanager
def running(*program: str, end_s: float = END_S) -> Iterator["subprocess.Popen[str]"]:
    """A relay as a program."""
    argv = [sys.executable, "-W", "error", "-c", START.format(end_s=end_s)]
    options = ["relay", "--host-port", "0", "--remote-port", "0", "--", *program]
    pipe = subprocess.PIPE
    with subprocess.Popen([*argv, *options], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until_said(process: "subprocess.Popen[str]", event: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        said: dict[str, Any] = json.loads(line)
        if said["event"] == event:
            return said
    raise AssertionError(f"it did not say {event}")
