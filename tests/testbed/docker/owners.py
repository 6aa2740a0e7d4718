"""Processes of the lab that are made to be killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lab
from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import standby
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import Owner
from lab.testbed.owner import identity
from tests.testbed.docker.sets import things_of

LONGEST_S = 15.0
"""From an owner's SIGKILL to nothing left, at most."""


@dataclass(frozen=True, slots=True)
class Victim:
    """One owner, and what it said so far."""

    process: "subprocess.Popen[str]"
    owner: Owner

    def hear(self) -> str:
        """The next line that it says; empty once it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def owner(*words: str) -> Iterator[Victim]:
    """A Python process with the lab in its path."""
    path = os.pathsep.join(filter(None, (str(Path(lab.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    # Whatever is removed, Testcontainers' own reaper did not do it.
    env = {**os.environ, "PYTHONPATH": path, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=env)
    victim = Victim(process, Owner(identity(process.pid), labels.boot_id()))
    try:
        yield victim
    finally:
        victim.kill()
        assert process.stdout is not None
        process.stdout.close()


def until(condition: Callable[[], object], timeout_s: float = LONGEST_S) -> float:
    """Wait until it holds; how long that took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise TimeoutError(f"not within {timeout_s:g} s")
        time.sleep(0.05)
    return time.monotonic() - began


def wait_until_nothing_is_left(engine: Engine, owner: Owner) -> float:
    """Until an owner has nothing on an engine and no process any more, the reaper included; how long that took."""
    try:
        return until(lambda: not standing_by(owner) and not things_of(engine, owner))
    except TimeoutError:
        raise AssertionError(f"left after {LONGEST_S:g} s: {things_of(engine, owner)}") from None


def standing_by(owner: Owner) -> list[int]:
    """The standby processes of an owner; one that is there may still make something."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if standby.MARK.encode() in words and owner.identity.encode() in words:
                found.append(int(process.name))
    return found
