"""Counters of this process's network namespace, named as ``nstat`` names them."""

from collections.abc import Mapping
from pathlib import Path

PROC_NET = Path("/proc/thread-self/net")
"""The namespace of the calling thread; /proc/net is that of the process's first thread."""


def read_counters(proc_net: Path = PROC_NET) -> dict[str, int]:
    """All counters now, as ``nstat -az`` lists them: ``TcpRetransSegs``, ``TcpExtTCPTimeouts``, ``Ip6InReceives``.

    The files are read one after the other, so they are not of one instant. A few entries are settings or gauges
    (``TcpRtoMax``, ``TcpCurrEstab``), some of which can be negative.

    Args:
        proc_net: Folder with ``snmp``, ``netstat`` and ``snmp6``; the last one is missing in kernels without IPv6.
    """
    counters = _prefixed((proc_net / "snmp").read_text())
    counters |= _prefixed((proc_net / "netstat").read_text())
    snmp6 = proc_net / "snmp6"
    if snmp6.exists():
        counters |= {name: int(value) for name, value in map(str.split, snmp6.read_text().splitlines())}
    return counters


def delta(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What each counter of ``after`` grew by; one that ``before`` lacks (the kernel had not met it yet) grew from 0."""
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _prefixed(text: str) -> dict[str, int]:
    """Pairs of lines, ``Tcp: RtoAlgorithm RtoMin ...`` above ``Tcp: 1 200 ...``, as name to value."""
    lines = [line.split() for line in text.splitlines()]
    counters: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        prefix = names[0].removesuffix(":")
        counters |= {prefix + name: int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return counters
