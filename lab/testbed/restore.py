"""Takes everything of the lab's own back out of this process's network namespace, whoever put it there."""

from pathlib import Path

from lab.core.errors import LabError
from lab.testbed import sink

_LEGACY = (Path("/proc/self/net/ip_tables_names"), Path("/proc/self/net/ip6_tables_names"))
"""The legacy tables that have come into being in this namespace; looking for rules would make one."""


def restore() -> list[str]:
    """Remove the lab's rules, then its sink; idempotent.

    Returns:
        What was there.

    Raises:
        LabError: the kernel did not let it be removed.
    """
    return [*_remove_rules(), *(f"{one.kind} {one.name}" for one in sink.remove_leftovers())]


def _remove_rules() -> list[str]:
    removed = []
    from lab.testbed import firewall_nftables

    try:
        removed += firewall_nftables.remove_leftovers()
    except LabError:
        # A kernel without nftables has no rules there; where it has, the legacy tables are still to be looked at.
        if not _has_mangle():
            raise
    if _has_mangle():
        from lab.testbed import firewall_iptables

        removed += firewall_iptables.remove_leftovers()
    return removed


def _has_mangle() -> bool:
    return any(path.exists() and "mangle" in path.read_text(encoding="ascii").split() for path in _LEGACY)
