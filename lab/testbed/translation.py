"""The router's way out: what leaves by it has the router's own address there, and what comes back finds the client.

The kernel does that packet by packet and ends no connection, so that the far kernel talks to the client's own. It
happens behind the hole on the way out (postrouting) and before it on the way back (prerouting): the hole's rules know
the client's address alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

_LONG = "432000"
"""Five days, the kernel's own for an established connection (``nf_conntrack_tcp_timeout_established``)."""

_PREFIX = "net.netfilter.nf_conntrack_tcp_"

SYSCTLS: Final = {
    # A connection whose ends go on in the dark looks closed or unanswered to the router, which would forget it after
    # 10 s to 5 min. What then comes from outside would find no client, and the router's TCP would answer it.
    **{
        f"{_PREFIX}timeout_{state}": _LONG
        for state in (
            "established", "close", "close_wait", "fin_wait", "last_ack", "time_wait", "max_retrans", "unacknowledged",
        )
    },
    # What the hole swallowed is missing in the router's picture of the window; the rest belongs to the flow no less.
    f"{_PREFIX}be_liberal": "1",
}  # fmt: skip
"""What the router's namespace needs, so that no translation ends before the run does."""


def sysctls() -> dict[str, str]:
    """Those of ``SYSCTLS`` that this kernel has."""
    return {name: value for name, value in SYSCTLS.items() if Path("/proc/sys", *name.split(".")).exists()}


class Translation(Protocol):
    """The rules of one way out, in the namespace of the process that made the object."""

    def close(self) -> None:
        """Remove them; idempotent."""


def open_translation(interface: str, addresses: Sequence[str]) -> Translation:
    """Put the rules in force.

    A TCP segment from outside that belongs to no connection of the client is dropped unanswered: the far end of a flow
    that was forgotten shall see a dead peer, and not the router's reset. The hole's counters know nothing of it, the
    capture does: the run cannot prove itself then.

    Args:
        interface: The router's one that leads out.
        addresses: The router's own there, at most one of each family.

    Raises:
        Unsupported: this kernel has no nftables, or one without translation.
        EnvironmentNotReady: a library or a privilege is missing.
    """
    # Imported where it is used: it loads a shared library. Not in the legacy tables: what python-iptables makes of SNAT
    # and MASQUERADE with libxtables 12.7 the kernel refuses (EINVAL). The two kinds of rules stand side by side.
    from lab.testbed.firewall_nftables import NftablesTranslation

    return NftablesTranslation(interface, addresses)
