"""Carries out the few steps that the tests' scripts have, on plain TCP."""

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from lab.programs.report import say

LOST_S = 1.0
EXCHANGES = 20
EVERY_S = 0.1


class Assistant:
    def __init__(self, url: str) -> None:
        found = urlsplit(url)
        self._address = (found.hostname or "", found.port or 0)
        self._attempts = 0
        self._old: list[socket.socket] = []
        self._current = self._connect()

    def _connect(self) -> socket.socket:
        self._attempts += 1
        say("connecting", attempt=self._attempts, handle=None if self._attempts == 1 else "handle")
        connected = socket.create_connection(self._address, 5)
        connected.settimeout(LOST_S)
        say("connected", attempt=self._attempts, local=list(connected.getsockname()[:2]))
        return connected

    def _exchange(self, text: str = "x") -> bool:
        try:
            self._current.sendall(f"{text}\n".encode())
            return bool(self._current.recv(100))
        except TimeoutError:
            return False

    def say(self, step: dict[str, Any]) -> None:
        for _ in range(EXCHANGES):
            assert self._exchange(step["clip"])
            time.sleep(EVERY_S)
        say("said", clip=step["clip"])

    def mark(self, step: dict[str, Any]) -> None:
        say("mark", name=step["name"])
        time.sleep(0.3)

    def wait(self, step: dict[str, Any]) -> None:
        assert step["event"] == "lost"
        while self._exchange():
            time.sleep(EVERY_S)
        say("lost", attempt=self._attempts)
        self._old.append(self._current)

    def resume(self, step: dict[str, Any]) -> None:
        for _ in step["at"]:
            self._current = self._connect()
            assert self._exchange("resumed")
            say("setup_complete", attempt=self._attempts, took_s=0.0)
            time.sleep(0.2)

    def drop(self, step: dict[str, Any]) -> None:
        if step["how"] == "abort":
            self._current.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._current.close()
        say("drop", how=step["how"])

    def close_old(self, _: dict[str, Any]) -> None:
        for old in self._old:
            old.sendall(b"close\n")
            # What is unread would make a reset of the close.
            while not old.recv(100).endswith(b"close\n"):
                pass
            old.close()
        say("close_old")

    def watch(self, step: dict[str, Any]) -> None:
        time.sleep(step["for"])

    def end(self, _: dict[str, Any]) -> None:
        say("bookings", count=1)
        say("done", ok=True)
        sys.stdin.read()


def die(step: dict[str, Any]) -> None:
    sys.exit(step["status"])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--script", type=json.loads)
    options, rest = parser.parse_known_args(argv)
    say("given", rest=rest)
    assistant = Assistant(options.url)
    kinds: dict[str, Callable[[dict[str, Any]], None]] = {
        "say": assistant.say,
        "mark": assistant.mark,
        "await": assistant.wait,
        "resume": assistant.resume,
        "drop": assistant.drop,
        "close-old": assistant.close_old,
        "watch": assistant.watch,
        "end": assistant.end,
        "die": die,
    }
    for step in options.script:
        kinds[step["do"]](step)


if __name__ == "__main__":
    main()
