"""Runs a Python module in a fork of a warm process, instead of a new interpreter.

An interpreter with the lab's imports takes longer to start than most experiments wait; a fork of an agent, which has
them loaded, takes milliseconds.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import os
import runpy
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NoReturn

from lab.testbed.agent import kernel

_STANDARD_FDS = 3


def preload(names: Sequence[str]) -> None:
    """Import what many programs will want, once; one that cannot be imported is its program's to report.

    Args:
        names: Dotted names of modules; what is imported already costs nothing.
    """
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if missing:
        gc.freeze()


def fork(
    module: str, argv: Sequence[str], env: Mapping[str, str], cwd: str
) -> tuple[int, tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    """Start a module as ``__main__`` in a child.

    Returns:
        Process id, and the near ends of its stdin, stdout and stderr, unbuffered.
    """
    inner, outer = _pipes()
    pid = os.fork()
    if pid == 0:
        _become(lambda: _run(module, argv, env, cwd), inner)
    for fd in inner:
        os.close(fd)
    stdin, stdout, stderr = outer
    return pid, (os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0), os.fdopen(stderr, "rb", 0))


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Three pipes: the child's ends, and the parent's."""
    child_in, parent_in = os.pipe()
    parent_out, child_out = os.pipe()
    parent_err, child_err = os.pipe()
    return (child_in, child_out, child_err), (parent_in, parent_out, parent_err)


def _become(target: Callable[[], object], standard: tuple[int, int, int]) -> NoReturn:
    """In the child: shed what belongs to the agent, run, exit; never returns into the agent's loop."""
    os.setsid()
    for fd, replaced in zip(standard, range(_STANDARD_FDS), strict=True):
        os.dup2(fd, replaced)
    os.closerange(_STANDARD_FDS, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # As an interpreter does for itself: a write to a connection that is over is an error of the program's, not its end.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.geteuid() != 0:
        kernel.drop_capabilities()
    _finish(target)


def _run(module: str, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    kernel.name_process(module.rpartition(".")[2])
    atexit._clear()  # noqa: SLF001 - what the agent registered is not the program's
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    # As ``python -m`` does; the rest of the path is the caller's own.
    sys.path.insert(0, cwd)
    sys.argv = [module, *argv]
    # Open as long as the process lives, as an interpreter's own are.
    reopen = functools.partial(open, encoding="utf-8", closefd=False)
    sys.stdin = reopen(0)
    sys.stdout = reopen(1, "w", buffering=1)
    sys.stderr = reopen(2, "w", buffering=1, errors="backslashreplace")
    gc.unfreeze()
    with warnings.catch_warnings():
        # The agent may have imported the module; a second copy as __main__ is what is wanted.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _finish(target: Callable[[], object]) -> NoReturn:
    """Run and end the process as the interpreter would, without unwinding the agent's frames."""
    code = 1
    try:
        target()
        code = 0
    except SystemExit as exit_:
        code = _exit_code(exit_)
    except KeyboardInterrupt:
        code = -signal.SIGINT
    except BaseException:  # noqa: BLE001 - what an interpreter does with it
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()  # noqa: SLF001 - os._exit runs none, and the program may have registered some
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _exit_code(exit_: SystemExit) -> int:
    if exit_.code is None:
        return 0
    if isinstance(exit_.code, int):
        return exit_.code & 0xFF
    print(exit_.code, file=sys.stderr)  # noqa: T201 - as sys.exit("message") does
    return 1
