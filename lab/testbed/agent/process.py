"""A program in a node, as the caller sees it."""

import re
import signal
import threading
import time
from collections.abc import Callable, Sequence

from lab.core.errors import UsageError
from lab.testbed.agent.events import Event, Exit, Output, StreamEnd
from lab.testbed.agent.output import Splitter, Transcript
from lab.testbed.agent.rpc import Channel
from lab.testbed.ports import Line

_STREAMS = ("stdout", "stderr")
_LAST_LINES = 8


class AgentProcess:
    """A program that an agent runs; fulfils ``ports.Process``.

    Args:
        channel: To the agent of its node.
        number: Its number in the node.
        argv: The command.
    """

    def __init__(self, channel: Channel, number: int, argv: Sequence[str]) -> None:
        self._channel = channel
        self._number = number
        self._argv = tuple(argv)
        self._pid = 0
        self._started_at = 0.0
        self._changed = threading.Condition()
        self._splitters = {stream: Splitter(stream) for stream in _STREAMS}
        self._transcript = Transcript()
        self._listeners: list[Callable[[Line], None]] = []
        self._open_streams = set(_STREAMS)
        self._returncode: int | None = None
        self._exited_at: float | None = None
        self._abandoned = False
        self._lost = 0

    def __repr__(self) -> str:
        return f"<{' '.join(self._argv)}: {self._state()}>"

    @property
    def argv(self) -> Sequence[str]:
        """The command as it was given."""
        return self._argv

    @property
    def pid(self) -> int:
        """Process id in the caller's PID namespace."""
        return self._pid

    @property
    def started_at(self) -> float:
        """When it was started."""
        return self._started_at

    @property
    def lines(self) -> Sequence[Line]:
        """Output so far, both streams, in the order read."""
        with self._changed:
            return self._transcript.kept()

    @property
    def lost_bytes(self) -> int:
        """How much of the output is missing from ``lines``: it came too fast, or was more than is kept."""
        with self._changed:
            return self._lost + self._transcript.lost_chars

    @property
    def returncode(self) -> int | None:
        """Exit status, negative signal number, or None while it runs."""
        return self._returncode

    @property
    def exited_at(self) -> float | None:
        """When it exited."""
        return self._exited_at

    def wait_for_line(self, pattern: str | re.Pattern[str], timeout_s: float, *, since: float = 0.0) -> Line:
        """The first line at or after ``since`` in which the pattern is found."""
        expression = _compiled(pattern)
        deadline = time.monotonic() + timeout_s
        seen = 0
        with self._changed:
            while True:
                for line in self._transcript.since(seen):
                    if line.at >= since and expression.search(line.text):
                        return line
                seen = len(self._transcript)
                if self._silent or not self._changed.wait(deadline - time.monotonic()):
                    break
        raise TimeoutError(
            f"No line of {' '.join(self._argv)!r} matched {expression.pattern!r} within {timeout_s:g} s; "
            f"{self._state()}.{self._last_words()}"
        )

    def listen(self, hear: Callable[[Line], None]) -> None:
        """Have every line told, those so far at once, then each as it comes."""
        with self._changed:
            for line in self._transcript.kept():
                hear(line)
            self._listeners.append(hear)

    def wait(self, timeout_s: float) -> int:
        """The exit status."""
        with self._changed:
            self._changed.wait_for(lambda: self._returncode is not None or self._abandoned, timeout_s)
        if self._returncode is None:
            raise TimeoutError(
                f"{' '.join(self._argv)!r} did not exit within {timeout_s:g} s; {self._state()}.{self._last_words()}"
            )
        return self._returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; a program that has exited is no error."""
        self._channel.call("send_signal", self._number, int(signal.Signals(number)))

    def write(self, text: str) -> None:
        """Write to its standard input."""
        self._channel.call("write", self._number, text.encode())

    def close_stdin(self) -> None:
        """End its standard input."""
        self._channel.call("close_stdin", self._number)

    def started(self, at: float, pid: int) -> None:
        """Take note of the start."""
        self._started_at, self._pid = at, pid

    def handle(self, event: Event) -> None:
        """Take note of what the agent reports; called by the testbed's reader."""
        with self._changed:
            if isinstance(event, Exit):
                # What its descendants may still write comes as lines of its own.
                self._flush(*_STREAMS)
                self._returncode, self._exited_at = event.returncode, event.at
            elif isinstance(event, StreamEnd):
                self._gap(event.stream, event.lost)
                self._flush(event.stream)
                self._open_streams.discard(event.stream)
            else:
                self._take(event)
            self._changed.notify_all()

    def abandon(self) -> None:
        """Nothing will be reported any more: the testbed is gone."""
        with self._changed:
            self._flush(*_STREAMS)
            self._open_streams.clear()
            self._abandoned = True
            self._changed.notify_all()

    @property
    def _silent(self) -> bool:
        """Whether no line can come any more."""
        return not self._open_streams and (self._returncode is not None or self._abandoned)

    def _take(self, output: Output) -> None:
        self._gap(output.stream, output.lost)
        for line in self._splitters[output.stream].feed(output.data, output.at):
            self._add(line)

    def _gap(self, stream: str, lost: int) -> None:
        if lost:
            # The two halves around a gap are not one line.
            self._flush(stream)
            self._lost += lost

    def _flush(self, *streams: str) -> None:
        for stream in streams:
            for line in self._splitters[stream].flush():
                self._add(line)

    def _add(self, line: Line) -> None:
        self._transcript.add(line)
        for hear in self._listeners:
            hear(line)

    def _state(self) -> str:
        if self._returncode is not None:
            return f"it exited with {self._returncode}"
        return "the testbed was closed" if self._abandoned else "it still runs"

    def _last_words(self) -> str:
        lines = self._transcript.kept()[-_LAST_LINES:]
        if not lines:
            return " It printed nothing."
        return " Last lines:\n" + "\n".join(f"  {line.stream}: {line.text}" for line in lines)


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}.") from error
