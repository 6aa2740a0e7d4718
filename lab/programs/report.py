"""What the programs say: one JSON object per line, flushed."""

import errno
import json
import sys
import time
from collections.abc import Mapping
from typing import Any


def say(event: str, *, at: float | None = None, **detail: Any) -> None:
    """Print one event.

    Args:
        event: What happened.
        at: When, CLOCK_MONOTONIC seconds; now where None.
        detail: JSON values.
    """
    sys.stdout.write(line_of(event, time.monotonic() if at is None else at, detail))
    sys.stdout.flush()


def line_of(event: str, at: float, detail: Mapping[str, Any]) -> str:
    """The line that ``say`` prints, newline included.

    Args:
        event: What happened.
        at: When, CLOCK_MONOTONIC seconds.
        detail: JSON values.
    """
    return json.dumps({"at": at, "event": event, **detail}) + "\n"


def errno_name(error: OSError) -> str | None:
    """``ETIMEDOUT`` and the like; None for a read time-out of Python's own making.

    Both are a ``TimeoutError`` since Python 3.10; only the kernel's has an errno.
    """
    return None if error.errno is None else errno.errorcode.get(error.errno, str(error.errno))
