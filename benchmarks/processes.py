"""What the processes of testbeds cost: all descendants of this process, as /proc tells."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """One process, from proc(5)'s ``stat``."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    """Its own, and that of the children it has waited for."""


def descendants() -> list[Stat]:
    """Every process that this one started, and those that they started."""
    every = {stat.pid: stat for stat in _all()}

    def is_ours(stat: Stat) -> bool:
        seen = stat
        while seen.parent in every:
            if seen.parent == os.getpid():
                return True
            seen = every[seen.parent]
        return False

    return [stat for stat in every.values() if is_ours(stat)]


def cpu_s() -> float:
    """CPU seconds of all descendants so far."""
    return sum(stat.cpu_s for stat in descendants())


def resident_bytes() -> int:
    """Memory of all descendants, what they share counted once (``Pss``)."""
    return sum(_pss(stat.pid) for stat in descendants())


def available_bytes() -> int:
    """Memory that the machine has left, which shows the kernel's share too; others' doings move it as well."""
    return _kib(Path("/proc/meminfo"), "MemAvailable:")


def namespaces(pids: Iterable[int]) -> set[str]:
    """The network namespaces that these processes are in, as far as this user may look."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return found


def every_pid() -> list[int]:
    """Every process of the machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _all() -> Iterator[Stat]:
    for pid in every_pid():
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        yield Stat(pid, int(fields[1]), head.partition("(")[2], sum(map(int, fields[11:15])) / _TICKS_PER_S)


def _pss(pid: int) -> int:
    try:
        return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
    except OSError:
        return 0


def _kib(path: Path, key: str) -> int:
    return next(int(line.split()[1]) << 10 for line in path.read_text().splitlines() if line.startswith(key))
