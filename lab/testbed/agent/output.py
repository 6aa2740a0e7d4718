"""Output of one program, cut into lines, within a bound."""

from collections import deque
from collections.abc import Iterator

from lab.testbed.ports import Line

HEAD_LINES = 100_000
HEAD_CHARS = 8 << 20
"""The beginning that is always kept; what happened at the start explains the rest."""

TAIL_LINES = 100_000
TAIL_CHARS = 8 << 20
"""The most recent output, which is kept behind the beginning; what lies between is counted and dropped."""

MOST_LINE_BYTES = 1 << 16
"""A longer line is cut into pieces of this size."""


class Splitter:
    """Makes lines of one stream's octets."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._partial = b""
        self._partial_at = 0.0

    def feed(self, data: bytes, at: float) -> list[Line]:
        """The lines that these octets complete."""
        *whole, rest = (self._partial + data).split(b"\n")
        lines = [self._line(text, at) for text in whole]
        while len(rest) >= MOST_LINE_BYTES:
            lines.append(self._line(rest[:MOST_LINE_BYTES], at))
            rest = rest[MOST_LINE_BYTES:]
        self._partial, self._partial_at = rest, at
        return lines

    def flush(self) -> list[Line]:
        """What came without its newline, stamped when it came."""
        rest, self._partial = self._partial, b""
        return [self._line(rest, self._partial_at)] if rest else []

    def _line(self, text: bytes, at: float) -> Line:
        return Line(at, self._stream, text.decode("utf-8", "backslashreplace"))


class Transcript:
    """Lines in the order read: the beginning, and the most recent ones."""

    def __init__(self) -> None:
        self._head: list[Line] = []
        self._head_chars = 0
        self._tail: deque[Line] = deque()
        self._tail_chars = 0
        self._head_full = False
        self.lost_lines = 0
        """Lines dropped between the beginning and the most recent ones."""

        self.lost_chars = 0
        """Their characters."""

    def __len__(self) -> int:
        """Lines so far, dropped ones included."""
        return len(self._head) + self.lost_lines + len(self._tail)

    def add(self, line: Line) -> None:
        """Keep a line, at the cost of the oldest behind the beginning."""
        size = len(line.text)
        if not self._head_full:
            self._head_full = len(self._head) >= HEAD_LINES or self._head_chars + size > HEAD_CHARS
        if not self._head_full:
            self._head.append(line)
            self._head_chars += size
            return
        self._tail.append(line)
        self._tail_chars += size
        while len(self._tail) > TAIL_LINES or self._tail_chars > TAIL_CHARS:
            dropped = len(self._tail.popleft().text)
            self._tail_chars -= dropped
            self.lost_chars += dropped
            self.lost_lines += 1

    def kept(self) -> list[Line]:
        """All lines that were kept."""
        return [*self._head, *self._tail]

    def since(self, position: int) -> Iterator[Line]:
        """The kept lines from the ``position``-th on, dropped ones counted."""
        head = len(self._head)
        if position < head:
            yield from self._head[position:]
        skip = max(0, position - head - self.lost_lines)
        for index in range(skip, len(self._tail)):
            yield self._tail[index]
