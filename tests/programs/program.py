"""Runs a program of the lab's and reads what it says."""

import json
import subprocess
import sys
import threading
from typing import Any

from tests.testbed.isolated import until


class Program:
    """A running program with its events so far."""

    def __init__(self, name: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", f"lab.programs.{name}", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.events.extend(json.loads(line) for line in self._process.stdout)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """The count-th event of this name."""
        until(lambda: len(self.named(event)) >= count)
        return self.named(event)[count - 1]

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        return self._process.wait(timeout=10)

    def close(self) -> None:
        """End it, and close its pipes."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
