"""Names a process for all time, so that what it left behind is never mistaken for a living one's."""

import os
from pathlib import Path

_START_TIME = 19
"""Place of the start time behind the command name in /proc/PID/stat: field 22 of proc(5)."""


def identity(pid: int) -> str:
    """A process: its id, when it started (clock ticks since boot), and the PID namespace in which the id counts.

    Raises:
        ProcessLookupError: there is none.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        started = stat.rpartition(")")[2].split()[_START_TIME]
        return f"{pid}:{started}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"there is no process {pid}") from error


def has_ended(name: str) -> bool:
    """Whether the process of an ``identity`` is known to be gone; False where that cannot be told from here."""
    pid, _, rest = name.partition(":")
    _, _, namespace = rest.partition(":")
    if not pid.isdecimal() or namespace != str(Path("/proc/self/ns/pid").stat().st_ino):
        return False
    try:
        return identity(int(pid)) != name or _is_zombie(int(pid))
    except ProcessLookupError:
        return True


def own_identity() -> str:
    """This process's."""
    return identity(os.getpid())


def _is_zombie(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[0] in "ZX"
