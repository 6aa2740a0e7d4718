"""The recogniser in a process of its own.

pocketsphinx keeps Python's lock for as long as it decodes, 0.05 to 0.15 s an utterance and several times that on a busy
machine, so that in a thread it holds up every session of the process: their pongs come late by all of it.

A request is a length of four octets and the utterance; its answer is a JSON object in a line.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from typing import Any, BinaryIO

from lab.core.errors import EnvironmentNotReady, LabError
from lab.live.voice import recogniser

_BOOT = "import sys; sys.path[:] = {path!r}; from lab.live.voice.apart import main; main()"
_LENGTH = 4


class Apart:
    """Makes words of utterances; the process begins when it is first needed, and again where it has ended.

    One thread at a time asks; any other may close.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._asking = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        return None if self._child is None else self._child.pid

    def words(self, pcm: bytes) -> str:
        """What was said; empty for noise and silence, and once this is closed.

        What this process's own recogniser remembers, or that of the one it was forked from, needs no other process.

        Args:
            pcm: A whole utterance: 16 kHz, 16 bits, one channel.

        Raises:
            EnvironmentNotReady: see ``recogniser.Recogniser``.
            RuntimeError: the process ended in the midst of it.
        """
        if (known := recogniser.remembered(pcm)) is not None:
            return known
        with self._asking:
            if self._closed:
                return ""
            child = self._child = self._child or _begin()
            answer = _ask(child, pcm)
            if answer is None:
                self._drop()
        return self._said(answer)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._closed = True
        if (child := self._child) is not None:
            child.kill()
        with self._asking:  # Who asks has no answer now, and is done.
            self._drop()

    def _said(self, answer: dict[str, Any] | None) -> str:
        if answer is None:
            if self._closed:
                return ""
            raise RuntimeError("the recogniser's process ended")
        if "error" in answer:
            raise EnvironmentNotReady(answer["error"], fix=answer["fix"])
        return str(answer["words"])

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with contextlib.suppress(BrokenPipeError), child:  # What it was sent and did not read.
                pass


def _begin() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _BOOT.format(path=sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _ask(child: subprocess.Popen[bytes], pcm: bytes) -> dict[str, Any] | None:
    """The answer; None where the process has ended."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(len(pcm).to_bytes(_LENGTH, "big") + pcm)
        child.stdin.flush()
        line = child.stdout.readline()
    except OSError:
        return None
    return json.loads(line) if line.endswith(b"\n") else None


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    while len(length := requests.read(_LENGTH)) == _LENGTH:
        pcm = requests.read(int.from_bytes(length, "big"))
        try:
            answer = {"words": recogniser.recognise(pcm)}
        except LabError as error:
            answer = {"error": error.message, "fix": error.fix or ""}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def main() -> None:
    """The process; it ends with the one that began it, which may be by Ctrl-C for both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
