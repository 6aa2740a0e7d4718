"""Programs that run in a node: started, fed, read and reaped by the node's agent."""

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from lab.core.errors import UsageError
from lab.testbed.agent import modules
from lab.testbed.agent.events import EventSender, Exit, Output, StreamEnd
from lab.testbed.agent.loop import Loop
from lab.testbed.agent.rpc import Attached

READ_BYTES = 1 << 15
"""Most octets taken from a pipe at once, so that a flood leaves the agent time for calls in between."""

FLOOD_BYTES = 16 << 20
"""Output that a program may have sent ahead of ``FLOOD_BYTES_PER_S``; what exceeds both is counted and dropped."""

FLOOD_BYTES_PER_S = 8 << 20

MOST_STDIN_BYTES = 16 << 20
"""Input that waits for a program which does not read it."""


@dataclass(slots=True)
class Stream:
    """One output pipe of a program."""

    name: str
    pipe: IO[bytes]
    lost: int = 0
    """Octets dropped since the last ones that were sent."""


@dataclass(slots=True)
class Program:
    """One running program."""

    number: int
    pid: int
    pidfd: int
    stdin: IO[bytes]
    streams: list[Stream]
    popen: "subprocess.Popen[bytes] | None" = None
    """Kept so that its finalizer knows the process was reaped."""

    unwritten: deque[bytes] = field(default_factory=deque)
    unwritten_bytes: int = 0
    stdin_ends: bool = False
    allowance: float = FLOOD_BYTES
    """Octets that may be sent now; refills with time."""

    refilled_at: float = 0.0


class Commands:
    """Starts programs and reports what they do; every method is quick.

    Args:
        loop: The agent's loop.
        events: Where output and ends are reported.
        node: The node's name.
    """

    def __init__(self, loop: Loop, events: EventSender, node: str) -> None:
        self._loop = loop
        self._events = events
        self._node = node
        self._programs: dict[int, Program] = {}

    def spawn(self, number: int, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Attached:
        """Run a command; returns when it was started and its process id.

        Raises:
            UsageError: the program or the folder does not exist, or cannot be executed.
        """
        started_at = self._loop.time()
        try:
            popen = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _not_started(argv[0], cwd, error) from None
        stdin, stdout, stderr = popen.stdin, popen.stdout, popen.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._adopt(number, popen.pid, (stdin, stdout, stderr), popen)
        return Attached(started_at, popen.pid)

    def spawn_module(self, number: int, module: str, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Attached:
        """Run a Python module as ``python -m`` would, in a fork of this warm process.

        Raises:
            UsageError: the folder does not exist.
        """
        if not Path(cwd).is_dir():
            raise UsageError(f"The working folder {cwd} does not exist.")
        started_at = self._loop.time()
        pid, pipes = modules.fork(module, argv, env, cwd)
        self._adopt(number, pid, pipes)
        return Attached(started_at, pid)

    def send_signal(self, number: int, signal_number: int) -> None:
        """Signal a program; none where it has ended."""
        if program := self._programs.get(number):
            signal.pidfd_send_signal(program.pidfd, signal_number)

    def write(self, number: int, data: bytes) -> None:
        """Queue input for a program.

        Raises:
            BrokenPipeError: it has ended, or its input was closed.
            BlockingIOError: it has left too much unread.
        """
        program = self._programs.get(number)
        if program is None or program.stdin_ends or program.stdin.closed:
            raise BrokenPipeError("The program has ended, or its standard input was closed.")
        if program.unwritten_bytes + len(data) > MOST_STDIN_BYTES:
            raise BlockingIOError(f"The program left {program.unwritten_bytes} octets of its standard input unread.")
        program.unwritten.append(data)
        program.unwritten_bytes += len(data)
        self._feed(program)

    def close_stdin(self, number: int) -> None:
        """End a program's input after what is queued; idempotent."""
        program = self._programs.get(number)
        if program is not None and not program.stdin.closed:
            program.stdin_ends = True
            self._feed(program)

    def _adopt(
        self,
        number: int,
        pid: int,
        pipes: tuple[IO[bytes], IO[bytes], IO[bytes]],
        popen: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        stdin, stdout, stderr = pipes
        streams = [Stream("stdout", stdout), Stream("stderr", stderr)]
        program = Program(number, pid, os.pidfd_open(pid), stdin, streams, popen, refilled_at=self._loop.time())
        self._programs[number] = program
        for pipe in pipes:
            os.set_blocking(pipe.fileno(), False)
        for stream in streams:
            self._loop.add_reader(stream.pipe.fileno(), partial(self._read, program, stream))
        self._loop.add_reader(program.pidfd, partial(self._reap, program))

    def _read(self, program: Program, stream: Stream) -> bool:
        """Report one read; whether there may be more now."""
        try:
            data = os.read(stream.pipe.fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        at = self._loop.time()
        if not data:
            self._loop.remove_reader(stream.pipe.fileno())
            stream.pipe.close()
            self._events.send(StreamEnd(self._node, program.number, stream.name, at, stream.lost))
            return False
        if self._may_send(program, len(data), at):
            self._events.send(Output(self._node, program.number, stream.name, at, data, stream.lost))
            stream.lost = 0
        else:
            stream.lost += len(data)
        return True

    def _may_send(self, program: Program, length: int, now: float) -> bool:
        refill = (now - program.refilled_at) * FLOOD_BYTES_PER_S
        program.allowance = min(FLOOD_BYTES, program.allowance + refill)
        program.refilled_at = now
        if program.allowance < length or self._events.congested:
            return False
        program.allowance -= length
        return True

    def _reap(self, program: Program) -> None:
        """Report the end, after all that the program itself wrote; its children may go on writing."""
        at = self._loop.time()
        returncode = os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1])
        if program.popen is not None:
            program.popen.returncode = returncode
        for stream in program.streams:
            # A pipe holds 64 KiB by default; more than that can only be a descendant's.
            _repeat(partial(self._read, program, stream), most=0 if stream.pipe.closed else 1 + (1 << 17) // READ_BYTES)
        self._loop.remove_reader(program.pidfd)
        os.close(program.pidfd)
        self._end_stdin(program)
        del self._programs[program.number]
        self._events.send(Exit(self._node, program.number, at, returncode))

    def _feed(self, program: Program) -> None:
        """Write what the pipe takes; the rest when it takes more."""
        try:
            while program.unwritten:
                written = os.write(program.stdin.fileno(), program.unwritten[0])
                program.unwritten_bytes -= written
                rest = program.unwritten.popleft()[written:]
                if rest:
                    program.unwritten.appendleft(rest)
        except BlockingIOError:
            self._loop.add_writer(program.stdin.fileno(), partial(self._feed, program))
            return
        except BrokenPipeError:
            program.stdin_ends = True
        if program.stdin_ends:
            self._end_stdin(program)
        else:
            self._loop.remove_writer(program.stdin.fileno())

    def _end_stdin(self, program: Program) -> None:
        if not program.stdin.closed:
            self._loop.remove_writer(program.stdin.fileno())
            program.stdin.close()
        program.unwritten.clear()


def _repeat(step: Callable[[], bool], most: int) -> None:
    for _ in range(most):
        if not step():
            return


def _not_started(program: str, cwd: str, error: Exception) -> UsageError:
    if not Path(cwd).is_dir():
        return UsageError(f"The working folder {cwd} does not exist.")
    if isinstance(error, FileNotFoundError):
        where = "does not exist" if "/" in program else "is not on PATH"
        return UsageError(f"{program!r} {where}.", fix="give the full path of the program, or install it")
    if isinstance(error, PermissionError):
        return UsageError(f"{program!r} cannot be executed: permission denied.", fix=f"chmod +x {program}")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(f"{program!r} cannot be executed: {reason}.")
