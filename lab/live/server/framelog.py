"""Every frame and every note in a file, a JSON object per line; a disk that is full costs lines, not sessions."""

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LONG = re.compile(r'"data":"([A-Za-z0-9+/=_-]{65,})"')
"""Octets in base64, of which the length says enough."""

_QUOTED = 200
"""Octets of a frame that is no message."""


class FrameLog:
    """Appends to a file, unbuffered.

    Args:
        path: The file; None writes nothing.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = None if path is None else os.open(path, flags, 0o600)
        self._path = path
        self._torn = False
        self.lost = 0
        """Lines that could not be written."""

    @property
    def on(self) -> bool:
        """Whether anything is written."""
        return self._fd is not None

    def frame(self, connection: int, sender: str, payload: bytes, *, t: float) -> None:
        """Write a message down.

        Args:
            connection: Its number.
            sender: client or server.
            payload: JSON in one line.
            t: Session seconds.
        """
        if self._fd is not None:
            shown = _LONG.sub(lambda found: f'"data":"({len(found[1])} characters)"', payload.decode())
            self._write(self._head(t, connection, sender, len(payload)) + f', "frame": {shown}}}\n')

    def nonsense(self, connection: int, payload: bytes, why: str, *, t: float) -> None:
        """Write a client's frame down that is no message."""
        if self._fd is not None:
            quoted = json.dumps(payload[:_QUOTED].decode("utf-8", "backslashreplace"))
            head = self._head(t, connection, "client", len(payload))
            self._write(f'{head}, "nonsense": {quoted}, "why": {json.dumps(why)}}}\n')

    def note(self, event: str, fields: Mapping[str, Any], *, t: float) -> None:
        """Write a decision down."""
        if self._fd is not None:
            self._write(json.dumps({"at": time.monotonic(), "t": t, "event": event, **fields}) + "\n")

    def close(self) -> None:
        """Write no more."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @staticmethod
    def _head(t: float, connection: int, sender: str, octets: int) -> str:
        return (
            f'{{"at": {time.monotonic()}, "t": {t}, "connection": {connection}, "from": "{sender}", "octets": {octets}'
        )

    def _write(self, line: str) -> None:
        assert self._fd is not None
        # A line that was cut off stays alone: the next one begins anew.
        octets = ("\n" + line if self._torn else line).encode("utf-8", "backslashreplace")
        try:
            written = os.write(self._fd, octets)
        except OSError as error:
            self._fails(str(error))
            return
        self._torn = written < len(octets)
        if self._torn:
            self._fails(f"{written} of {len(octets)} octets written")

    def _fails(self, why: str) -> None:
        if not self.lost:
            sys.stderr.write(f"{self._path}: {why}; sessions go on, and the log lacks what cannot be written.\n")
        self.lost += 1
