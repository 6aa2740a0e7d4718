"""The life of a forked process that never becomes another program."""

import os
import signal
import traceback
from collections.abc import Callable
from typing import NoReturn


def become(target: Callable[[], object]) -> NoReturn:
    """In a child, right after the fork: run, then end the process; the parent's frames are never unwound.

    Args:
        target: What the child is there for. An error that leaves it is printed, and is exit status 1.
    """
    code = 1
    try:
        # A parent lets the kernel reap its children; what runs here waits for its own.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        target()
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody else to report it
        traceback.print_exc()
    finally:
        os._exit(code)
