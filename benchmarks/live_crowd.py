"""A session server and processes full of clients for it, for the benchmarks."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

SESSIONS = 300
LATE_S = 0.1
"""A watchdog pings every 0.5 s and gives up after 2 s: a tenth of a second is no part of what it measures."""


@contextlib.contextmanager
def server() -> Iterator[dict[str, Any]]:
    """The program: where it listens, and its ``pid``."""
    ports = ("--port", "0", "--status-port", "0", "--host", "127.0.0.1")
    command = [sys.executable, "-m", "lab.live.server", *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        listening: dict[str, Any] = json.loads(running.stdout.readline())
        # What it says is not read any more; it goes on without.
        running.stdout.close()
        try:
            yield listening | {"pid": running.pid}
        finally:
            running.terminate()


def status(listening: dict[str, Any]) -> dict[str, Any]:
    """What the server tells of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{listening['status']}/status", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def rank(values: Sequence[float], share: float) -> float:
    """The value that such a share of them does not exceed."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


class Overrun(Exception):
    """The server did not let all of them in."""


class Assistants:
    """A process of ``benchmarks.live_clients``.

    Args:
        port: Of the server.
        count: Sessions.
        speaking: How many of them speak.

    Raises:
        Overrun: some could not be set up.
    """

    def __init__(self, port: int, count: int, speaking: int) -> None:
        command = [sys.executable, "-m", "benchmarks.live_clients", *map(str, (port, count, speaking))]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self._answer()
        except Overrun:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._running.pid

    def ask(self, what: str, seconds: float) -> dict[str, Any]:
        """``measure`` or ``losses``; returns when that is over."""
        assert self._running.stdin is not None
        self._running.stdin.write(f"{what} {seconds}\n")
        self._running.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        with self._running:
            self._running.kill()

    def _answer(self) -> dict[str, Any]:
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if not line:
            raise Overrun
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def cheap(port: int, count: int, seconds: float) -> Iterator[None]:
    """Further sessions meanwhile, as cheap as they can be, every tenth of which speaks; ``seconds`` bounds it."""
    if count == 0:
        yield
        return
    command = [sys.executable, "-m", "benchmarks.live_load", *map(str, (port, count, "tenth", seconds))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            yield
        finally:
            running.kill()


class Bystander:
    """How late a thread's timers are that has nothing else to do: the machine's share in every lateness."""

    EVERY_S = 0.01

    def __init__(self) -> None:
        self.late_s: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            due = time.monotonic() + self.EVERY_S
            time.sleep(self.EVERY_S)
            self.late_s.append(time.monotonic() - due)


def waited_s(pid: int) -> float:
    """How long a process's first thread has waited for a processor that others had, seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing meanwhile; its kernel goes on acknowledging."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
