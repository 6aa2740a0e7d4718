"""A job and a simulator, each in a process of its own, led by a test."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

DEADLINE_S = 60.0
"""For a process that starts on a busy machine."""

LIFETIME_S = 2 * DEADLINE_S
"""After this a process is killed: whoever waits for a line of it, or for its end, goes on."""

Said = list[dict[str, Any]]


class Running:
    """One program: what it says, what is typed to it, and how it ends."""

    def __init__(self, *arguments: str, **options: Any) -> None:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", "lab.host", *arguments], text=True, **streams
        )
        self.said: Said = []
        """So far."""

    def type(self, *lines: str) -> None:
        """Type lines."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def end_input(self) -> None:
        """As with ctrl-D."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def until(self, event: str, **fields: object) -> dict[str, Any]:
        """Wait for a line; gives it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            if self.said[-1]["event"] == event and fields.items() <= self.said[-1].items():
                return self.said[-1]
        raise AssertionError(
            f"It ended without {event}: {self.said}, {self.process.stderr and self.process.stderr.read()}"
        )

    def code(self) -> int:
        """Wait for its end."""
        assert self.process.stdout is not None
        self.said += [json.loads(line) for line in self.process.stdout]
        return self.process.wait(DEADLINE_S)

    def of(self, event: str) -> Said:
        """All that it has said of one kind."""
        return [line for line in self.said if line["event"] == event]


@contextlib.contextmanager
def running(*arguments: str, **options: Any) -> Iterator[Running]:
    """A program, which ends with the block at the latest; options are those of ``subprocess.Popen``."""
    made = Running(*arguments, **options)
    killer = threading.Timer(LIFETIME_S, made.process.kill)
    killer.daemon = True
    killer.start()
    with made.process:
        try:
            yield made
        finally:
            killer.cancel()
            made.process.kill()


@contextlib.contextmanager
def listening(*arguments: str) -> Iterator[tuple[Running, str]]:
    """A job on a free port, and that."""
    role = arguments.index("job")
    with running(*arguments[: role + 1], "--port", "0", *arguments[role + 1 :]) as job:
        yield job, str(job.until("listening")["port"])
