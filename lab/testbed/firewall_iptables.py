"""Rules in the legacy tables, through python-iptables: a commit swaps the whole table at once.

libiptc reads a table, edits the copy and hands it back (``SO_SET_REPLACE``); the kernel puts it in place of the old
one, waits until no CPU walks the old one any more (``xt_replace_table``), and only then takes the old rules' counters,
which libiptc adds to the rules that stayed. Nothing is dropped uncounted, and nothing passes after the commit.

The table is mangle: nobody filters there, and its hooks come before those of the filter table. libiptc takes no lock
file, so nothing here depends on ``XTABLES_LOCKFILE``; the ``iptables`` command does.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from lab.core.errors import EnvironmentNotReady, InvalidRun, Unsupported
from lab.core.fault import Fault, Placement, Scope
from lab.core.flow import Endpoint
from lab.testbed.ports import CutReceipt

try:
    import iptc
except Exception as error:  # its own error class cannot be imported when its import fails
    raise EnvironmentNotReady(
        f"python-iptables could not load libiptc and libxtables: {error}.", fix="apt-get install iptables"
    ) from error

_TABLE = "mangle"
_CHAIN_PREFIX = "lab-fault-"
_CONNTRACK_CHAIN = "lab-conntrack"
_HOOKS = {Placement.ROUTER: "FORWARD", Placement.OWN_OUTPUT: "OUTPUT"}
_COMMIT_ATTEMPTS = 5
"""A commit fails with EAGAIN where another process changed the table after it was read; it is read again then."""


class IptablesRules:
    """The lab's chains in the mangle tables of IPv4 and IPv6."""

    def __init__(self) -> None:
        self._families = [_Family(_Table, _Rule)]
        # A kernel booted without IPv6 has no IPv6 tables either; no flow of the lab can ask for them there.
        if Path("/proc/net/if_inet6").exists():
            self._families.append(_Family(_Table6, _Rule6))

    @property
    def name(self) -> str:
        """Always iptables."""
        return "iptables"

    def build(self, number: int, fault: Fault) -> None:
        """Make the fault's chain."""
        self._family(fault).build(_chain(number), fault)

    def enforce(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the jump to the chain, as the hook's first rule."""
        family, hook, jump = self._family(fault), _HOOKS[fault.placement], self._jump(number, fault)
        return family.commit(lambda table: table.insert_entry(hook, jump, 0))

    def release(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the removal of the jump."""
        family, hook, jump = self._family(fault), _HOOKS[fault.placement], self._jump(number, fault)
        return family.commit(lambda table: table.delete_entry(hook, jump, _whole(jump)))

    def packets(self, number: int, fault: Fault) -> list[int]:
        """Packets dropped by each rule of the chain."""
        return self._family(fault).packets(_chain(number))

    def remove(self, number: int, fault: Fault) -> None:
        """Remove the fault's chain."""
        self._family(fault).remove(_chain(number))

    def close(self) -> None:
        """Remove the lab's jumps and chains."""
        for family in self._families:
            family.close()
        self._families = []

    def _family(self, fault: Fault) -> "_Family":
        if not fault.flow.ipv6:
            return self._families[0]
        if len(self._families) == 1:
            raise Unsupported(f"This kernel runs without IPv6; the flow {fault.flow} cannot exist.")
        return self._families[1]

    def _jump(self, number: int, fault: Fault) -> Any:
        return self._family(fault).jumps[_chain(number)]


class _Family:
    """One address family's table, and the rules in it that are the lab's."""

    def __init__(self, table: type, rule: type) -> None:
        self._rule = rule
        self._table = _open(table)
        self._table.close()
        self.jumps: dict[str, Any] = {}
        """Raw rule, ready to be inserted, by the name of the chain that it jumps to."""

        # What a killed owner left in this namespace; a table that fails here fails before any connection exists.
        self._remove_ours()
        self._load_conntrack()

    def build(self, chain: str, fault: Fault) -> None:
        drops = [_raw(self._drop(fault, *fault.flow.ends(direction))) for direction in fault.direction.directions]

        def apply(table: Any) -> None:
            table.create_chain(chain)
            for drop in drops:
                table.append_entry(chain, drop)

        self.commit(apply)
        with self._read():
            self.jumps[chain] = self._jump_to(chain)

    def remove(self, chain: str) -> None:
        def apply(table: Any) -> None:
            table.flush_entries(chain)
            table.delete_chain(chain)

        self.commit(apply)
        del self.jumps[chain]

    def commit(self, apply: Callable[[Any], None]) -> CutReceipt:
        """Read the table, change it, swap it; a change that someone else made in between is kept."""
        for attempt in range(_COMMIT_ATTEMPTS):
            try:
                with self._read() as table:
                    apply(table)
                    began = time.monotonic()
                    table.commit()
                    return CutReceipt(began_at=began, done_at=time.monotonic())
            except iptc.IPTCError as error:
                if attempt == _COMMIT_ATTEMPTS - 1:
                    raise InvalidRun(f"The kernel refused the rules: {_reason(error)}.") from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    def packets(self, chain: str) -> list[int]:
        with self._read() as table:
            counts, entry = [], table.first_rule(chain)
            while entry:
                counts.append(int(entry.counters.pcnt))
                entry = table.next_rule(entry)
            return counts

    def close(self) -> None:
        self._remove_ours()

    @contextlib.contextmanager
    def _read(self) -> Iterator[Any]:
        """The table as it is now. A commit uses a copy up, and a copy that is kept goes stale; so none is."""
        self._table.refresh()
        try:
            yield self._table
        finally:
            self._table.close()

    def _drop(self, fault: Fault, source: Endpoint, destination: Endpoint) -> Any:
        rule = self._rule_here()
        rule.src, rule.dst = source.address, destination.address
        if fault.scope is Scope.FLOW:
            rule.protocol = "tcp"
            tcp = rule.create_match("tcp")
            tcp.sport, tcp.dport = str(source.port), str(destination.port)
        rule.create_target("DROP")
        return rule

    def _jump_to(self, chain: str) -> Any:
        """The raw jump; the table has to be open, since the library looks the chain up."""
        rule = self._rule_here()
        rule.create_target(chain)
        return _raw(rule)

    def _rule_here(self) -> Any:
        rule = self._rule()
        # Whether a target is a chain is looked up in ``tables``: by default every table of the process, each of which
        # would be created in the namespace by the question, hooks and all.
        rule.tables = (self._table,)
        return rule

    def _load_conntrack(self) -> None:
        """Let conntrack see, and count the bytes of, every connection from its handshake on.

        A rule that needs conntrack registers its hooks for as long as it exists, even in a chain that no packet
        enters (``connbytes_mt_check``).
        """
        try:
            entry = self._conntrack_rule("connbytes", connbytes="0", connbytes_dir="both", connbytes_mode="bytes")
        except iptc.errors.XTablesError:
            # libxtables 12.7 (iptables 1.8.11) parses this match by a table that python-iptables does not read. The
            # state of a connection needs conntrack as well; its bytes are counted where the namespace is told to.
            entry = self._conntrack_rule("state", state="NEW")
            with contextlib.suppress(OSError):
                Path("/proc/sys/net/netfilter/nf_conntrack_acct").write_text("1", encoding="ascii")

        def apply(table: Any) -> None:
            table.create_chain(_CONNTRACK_CHAIN)
            table.append_entry(_CONNTRACK_CHAIN, entry)

        self.commit(apply)

    def _conntrack_rule(self, name: str, **parameters: str) -> Any:
        rule = self._rule_here()
        match = rule.create_match(name)
        for parameter, value in parameters.items():
            setattr(match, parameter, value)
        rule.create_target("RETURN")
        return _raw(rule)

    def _remove_ours(self) -> None:
        with self._read() as table:
            names = [chain.name for chain in table.chains]
            ours = [name for name in names if name == _CONNTRACK_CHAIN or name.startswith(_CHAIN_PREFIX)]
            jumps = {name: self._jump_to(name) for name in ours}
        if not ours:
            return

        def apply(table: Any) -> None:
            for chain in ours:
                for hook in _HOOKS.values():
                    while _jumps_to(table, hook, chain):
                        table.delete_entry(hook, jumps[chain], _whole(jumps[chain]))
                table.flush_entries(chain)
                table.delete_chain(chain)

        self.commit(apply)


class _Table(iptc.Table):  # type: ignore[misc]  # the library has no type information
    """A handle of its own.

    The library keeps one table per name and process for good. After a fork into another namespace that object still
    speaks to the old one.
    """

    def __new__(cls) -> Self:
        table: Self = object.__new__(cls)
        table._init(_TABLE, False)
        return table


class _Table6(iptc.Table6):  # type: ignore[misc]  # the library has no type information
    """The same for IPv6."""

    def __new__(cls) -> Self:
        table: Self = object.__new__(cls)
        table._init(_TABLE, False)
        return table


class _Rule(iptc.Rule):  # type: ignore[misc]  # the library has no type information
    """A rule that knows which tables its chains are in."""

    tables: tuple[Any, ...] = ()


class _Rule6(iptc.Rule6):  # type: ignore[misc]  # the library has no type information
    """The same for IPv6."""

    tables: tuple[Any, ...] = ()


def _open(table: type) -> Any:
    try:
        return table()
    except iptc.IPTCError as error:
        if "ermission" in str(error):
            raise EnvironmentNotReady(
                f"The legacy tables need CAP_NET_ADMIN and CAP_NET_RAW in this network namespace: {_reason(error)}.",
                fix="run as root, or allow unprivileged user namespaces",
            ) from error
        raise Unsupported(f"This kernel has no legacy mangle table: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    """The library's message without the marks of the bytes object in it."""
    return str(error).replace("b'", "").rstrip("'")


def _chain(number: int) -> str:
    return f"{_CHAIN_PREFIX}{number}"


def _raw(rule: Any) -> Any:
    """The rule as the kernel wants it.

    Not through ``final_check``: it lets the extension print the rule into a pipe that takes the place of the whole
    process's standard output meanwhile.
    """
    return rule.rule


def _whole(entry: Any) -> Any:
    """The mask that compares every octet of a rule."""
    return type(entry)(*[0xFF] * len(entry))


def _jumps_to(table: Any, hook: str, chain: str) -> bool:
    entry = table.first_rule(hook)
    while entry:
        if table.get_target(entry) == chain.encode():
            return True
        entry = table.next_rule(entry)
    return False
