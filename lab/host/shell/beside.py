"""The program that a relay brings along: it has the relay's standard input and output, and goes when the relay goes."""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from functools import partial

from lab.core.errors import UsageError

END_S = 2.0
"""How long it may take to end when it is asked to, before it is killed."""

_LOOK_S = 0.01
"""Between two looks at who is left."""

_INTERRUPT_S = 0.5
"""How much later an interrupt of both may be the relay's than its program's."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2)."""

_libc = ctypes.CDLL(None)


class Beside:
    """A program beside this one, from its start to its end.

    Args:
        argv: Its command line.

    Raises:
        UsageError: it cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        # A terminal is read by the group in its foreground alone, and tells that one of ctrl-C.
        self._has_group = not os.isatty(0)
        """Whether it has a process group of its own."""
        try:
            self._process = subprocess.Popen(
                argv,
                process_group=0 if self._has_group else None,
                preexec_fn=partial(_go_with, os.getpid()),  # Safe: the relay has no second thread.
            )
        except OSError as error:
            raise UsageError(f"{argv[0]} cannot be started: {error.strerror}") from error
        # Children of its own that it leaves behind become the relay's, which can wait for them.
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:
            self._end_process()
            raise

    def fileno(self) -> int:
        """A descriptor that can be read once it has ended."""
        return self._pidfd

    def wait(self) -> int:
        """Wait for its end; gives its status. Children that it leaves behind go on until ``end``."""
        if not self._has_group:
            return self._process.wait()
        # And leave it in the kernel's list, so that no other group can have its number meanwhile.
        ended = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def shares_interrupt(self, stop: int) -> bool:
        """Whether an interrupt that was its end is this one's too, which may be a little later here.

        Args:
            stop: A descriptor that can be read once this one is to end.
        """
        return not self._has_group and bool(select.select([stop], [], [], _INTERRUPT_S)[0])

    def end(self) -> None:
        """End it, and its children where they are a group of their own. It is done with then."""
        self._end_process()
        os.close(self._pidfd)

    def _end_process(self) -> None:
        if self._has_group:
            _end_group(self._process)
        else:
            _end_one(self._process)


def _go_with(parent: int) -> None:
    """Between fork and exec: whatever ends the relay, SIGKILL too, ends the program."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _end_one(program: subprocess.Popen[bytes]) -> None:
    program.terminate()
    try:
        program.wait(END_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _end_group(program: subprocess.Popen[bytes]) -> None:
    """End a program and its children, which may need longer than itself."""
    until = time.monotonic() + END_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, signal.SIGTERM)
        while _is_left(program.pid) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def _is_left(group: int) -> bool:
    """Whether any of a group is, once those that have ended are waited for, the children of one that ended too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
        return True
    return False
