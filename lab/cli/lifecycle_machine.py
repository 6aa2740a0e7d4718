"""What ``lab live lifecycle`` needs of a machine, and one sentence for a machine that has not got it.

Hundreds of sessions are under way at once. Where one of them fails for want of a file, a port or time, the others come
to nothing with it, and asyncio tells of each by a traceback: that is kept back where what ended the run is known.
"""

import contextlib
import errno
import gc
import logging
import os
import resource
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError
from lab.host.shell.failures import NotTold, RequestFailed
from lab.live.lifecycle import SessionError
from lab.study.lifecycle.servers import HOST

FILES = 640
"""That the tables may have open at once: 579 were, by /proc/PID/fd each 0.1 s. More sessions take no more: they go in
waves (``leaks.WAVE``)."""

ANSWER_S = 2.0
"""For a connection over loopback, which takes a tenth of a millisecond."""

UP = "sudo ip link set lo up"
PORTS = 'sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"'
LACKS = {
    errno.EMFILE: ("This process may open no more files", "ulimit -n 4096"),
    errno.ENFILE: ("This system may open no more files", "sudo sysctl -w fs.file-max=1000000"),
    errno.EADDRINUSE: (f"{HOST} has no port free", PORTS),
    errno.EADDRNOTAVAIL: (f"{HOST} has no port free", PORTS),
    errno.ENETUNREACH: (f"{HOST} cannot be reached", UP),
    errno.ENOBUFS: ("The kernel has no memory for a connection", "free some memory"),
    errno.ENOMEM: ("There is no memory", "free some memory"),
    errno.EAGAIN: ("This user can start no more processes or threads", "ulimit -u unlimited"),
}
"""By an error of the system: what it says of the machine, and what mends that."""

AGAIN = "run it again while the machine does nothing else"


def check() -> None:
    """Look for what can be seen beforehand.

    Raises:
        EnvironmentNotReady: it is not there.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        raise EnvironmentNotReady(
            f"A process may open {hard} files here; the tables need {FILES}.", fix="ulimit -n 4096"
        )
    if soft != resource.RLIM_INFINITY and soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    try:
        with socket.create_server((HOST, 0)) as door:
            socket.create_connection(door.getsockname(), timeout=ANSWER_S).close()
    except TimeoutError:
        message = f"{HOST} does not answer within {ANSWER_S:g} s."
        raise EnvironmentNotReady(message, fix=f"{UP}; let a firewall pass what is local") from None
    except OSError as error:
        raise known(error) or error from error


def known(error: BaseException) -> BaseException | None:
    """What ended a run, in words; None for what nobody foresaw.

    Args:
        error: Itself.
    """
    if isinstance(error, KeyboardInterrupt) or (isinstance(error, LabError) and not isinstance(error, SessionError)):
        return error
    reason = getattr(error, "reason", error)  # urllib's are wrapped
    number = reason.errno if isinstance(reason, OSError) else None
    if number in LACKS:
        message, fix = LACKS[number]
        return EnvironmentNotReady(f"{message} ({reason}).", fix=fix)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return None  # every verb's
    if isinstance(error, TimeoutError):
        return InvalidRun(
            "Something that takes milliseconds over loopback was not there within its seconds.", fix=AGAIN
        )
    if isinstance(error, SessionError):
        return InvalidRun(f"A session that was to stand did not: {error.message}", fix=AGAIN)
    if isinstance(error, (OSError, EOFError, RequestFailed, NotTold)):
        return InvalidRun(f"A connection over loopback failed: {error or type(error).__name__}.", fix=AGAIN)
    return None


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """Tell of a run that fails for what is known by that alone; all of it with LAB_DEBUG=1.

    Raises:
        EnvironmentNotReady: the machine lacks something.
        InvalidRun: it was too busy, or a session failed.
    """
    debug = os.environ.get("LAB_DEBUG") == "1"
    end: BaseException | None = None
    with contextlib.nullcontext() if debug else _kept_back():
        try:
            yield
        except BaseException as error:
            end = known(error)
            if end is None:
                raise
            if debug:
                raise end from (None if end is error else error)
            _forget(error)
        if end is not None:
            gc.collect()
            raise end.with_traceback(None) from None


def _forget(error: BaseException | None) -> None:
    """Let go of what was under way, which its frames hold, while what is said of that is kept back."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        before, error.__traceback__, error.__context__, error.__cause__ = error.__context__, None, None, None
        error = before


@contextlib.contextmanager
def _kept_back() -> Iterator[None]:
    """Keep what asyncio and the interpreter print by themselves, until the end is one that nobody foresaw, or none."""
    said: list[str] = []
    keeper = _Keeper(said)
    logger = logging.getLogger("asyncio")
    propagate, unraisable, in_thread = logger.propagate, sys.unraisablehook, threading.excepthook

    def keep(args: Any) -> None:
        said.append("".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback)).rstrip())

    logger.addHandler(keeper)
    logger.propagate, sys.unraisablehook, threading.excepthook = False, keep, keep
    try:
        yield
    except (LabError, KeyboardInterrupt):
        said.clear()
        raise
    finally:
        logger.removeHandler(keeper)
        logger.propagate, sys.unraisablehook, threading.excepthook = propagate, unraisable, in_thread
        for text in said:
            sys.stderr.write(f"{text}\n")


class _Keeper(logging.Handler):
    """Formats at once: a record holds what it is about."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(self.format(record))
