"""Rules in the legacy tables, through python-iptables: a commit swaps the whole table at once.

libiptc reads a table, edits the copy and hands it back (``SO_SET_REPLACE``); the kernel puts it in place of the old
one, waits until no CPU walks the old one any more (``xt_replace_table``), and only then takes the old rules' counters,
which libiptc adds to the rules that stayed. Nothing is dropped uncounted, and nothing passes after the commit.

The table is mangle: nobody filters there, and its hooks come before those of the filter table. libiptc takes no lock
file, so nothing here depends on ``XTABLES_LOCKFILE``; the ``iptables`` command does.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lab.core.errors import EnvironmentNotReady, InvalidRun, Unsupported
from lab.core.fault import Fault, Scope
from lab.core.flow import Direction
from lab.testbed import sink
from lab.testbed.hooks import Hook, hooks
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
_COUNTED = (b"DROP", b"MARK")
"""Targets of the rules whose packets are a fault's; the one beside them says that a marked packet is done with."""

_COMMIT_ATTEMPTS = 5
"""A commit fails with EAGAIN where another process changed the table after it was read; it is read again then."""


class IptablesRules:
    """The lab's chains in the mangle tables of IPv4 and IPv6."""

    def __init__(self) -> None:
        self._families = [_Family(_Table, _Rule)]
        if _has_ipv6():
            self._families.append(_Family(_Table6, _Rule6))

    @property
    def name(self) -> str:
        """Always iptables."""
        return "iptables"

    def build(self, number: int, fault: Fault) -> None:
        """Make the fault's chains."""
        self._family(fault).build({_chain(number, hook): part for hook, part in hooks(fault).items()}, fault)

    def enforce(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the jumps to the chains, each as its hook's first rule."""
        jumps = self._jumps(number, fault)

        def apply(table: Any) -> None:
            for hook, jump in jumps.items():
                table.insert_entry(hook, jump, 0)

        return self._family(fault).commit(apply)

    def release(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the removal of the jumps."""
        jumps = self._jumps(number, fault)

        def apply(table: Any) -> None:
            for hook, jump in jumps.items():
                table.delete_entry(hook, jump, _whole(jump))

        return self._family(fault).commit(apply)

    def packets(self, number: int, fault: Fault) -> list[int]:
        """Packets that each rule matched."""
        return self._family(fault).packets([_chain(number, hook) for hook in hooks(fault)])

    def remove(self, number: int, fault: Fault) -> None:
        """Remove the fault's chains."""
        self._family(fault).remove([_chain(number, hook) for hook in hooks(fault)])

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

    def _jumps(self, number: int, fault: Fault) -> dict[str, Any]:
        """The raw jumps by the hook that each goes into."""
        return {hook.name: self._family(fault).jumps[_chain(number, hook)] for hook in hooks(fault)}


def remove_leftovers() -> list[str]:
    """Remove the lab's chains from this namespace's tables, whoever made them; idempotent. What was there."""
    families = [_Family(_Table, _Rule, fresh=False)]
    if _has_ipv6():
        families.append(_Family(_Table6, _Rule6, fresh=False))
    return [f"chain {name}" for family in families for name in family.remove_ours()]


def _has_ipv6() -> bool:
    # A kernel booted without IPv6 has no IPv6 tables either; no flow of the lab can ask for them there.
    return Path("/proc/net/if_inet6").exists()


class _Family:
    """One address family's table, and the rules in it that are the lab's."""

    def __init__(self, table: type, rule: type, *, fresh: bool = True) -> None:
        self._rule = rule
        self._table = _open(table)
        self._table.close()
        self.jumps: dict[str, Any] = {}
        """Raw rule, ready to be inserted, by the name of the chain that it jumps to."""

        if fresh:
            # What a killed owner left in this namespace; a table that fails here fails before any connection exists.
            self.remove_ours()
            self._load_conntrack()

    def build(self, chains: Mapping[str, Sequence[Direction]], fault: Fault) -> None:
        rules = {
            chain: [_raw(rule) for direction in directions for rule in self._rules(fault, direction)]
            for chain, directions in chains.items()
        }

        def apply(table: Any) -> None:
            for chain, entries in rules.items():
                table.create_chain(chain)
                for entry in entries:
                    table.append_entry(chain, entry)

        self.commit(apply)
        with self._read():
            self.jumps.update({chain: self._jump_to(chain) for chain in chains})

    def remove(self, chains: Sequence[str]) -> None:
        def apply(table: Any) -> None:
            for chain in chains:
                table.flush_entries(chain)
                table.delete_chain(chain)

        self.commit(apply)
        for chain in chains:
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

    def packets(self, chains: Sequence[str]) -> list[int]:
        counts = []
        with self._read() as table:
            for chain in chains:
                entry = table.first_rule(chain)
                while entry:
                    if table.get_target(entry) in _COUNTED:
                        counts.append(int(entry.counters.pcnt))
                    entry = table.next_rule(entry)
        return counts

    def close(self) -> None:
        self.remove_ours()

    @contextlib.contextmanager
    def _read(self) -> Iterator[Any]:
        """The table as it is now. A commit uses a copy up, and a copy that is kept goes stale; so none is."""
        self._table.refresh()
        try:
            yield self._table
        finally:
            self._table.close()

    def _rules(self, fault: Fault, direction: Direction) -> list[Any]:
        """What happens to one direction: a drop, or a mark and then nothing more in this table.

        A later rule there may set the whole mark, and the packet would go its ordinary way.
        """
        if direction is not fault.placement.sunk:
            return [self._match(fault, direction, "DROP")]
        marking = self._match(fault, direction, "MARK")
        # The other bits are somebody else's.
        marking.target.or_mark = f"{sink.read_mark(ipv6=fault.flow.ipv6):#x}"
        return [marking, self._match(fault, direction, "ACCEPT")]

    def _match(self, fault: Fault, direction: Direction, target: str) -> Any:
        source, destination = fault.flow.ends(direction)
        rule = self._rule_here()
        rule.src, rule.dst = source.address, destination.address
        if fault.scope is Scope.FLOW:
            rule.protocol = "tcp"
            tcp = rule.create_match("tcp")
            tcp.sport, tcp.dport = str(source.port), str(destination.port)
        rule.create_target(target)
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

    def remove_ours(self) -> list[str]:
        """Remove every chain of the lab's, whoever made it; their names."""
        with self._read() as table:
            names = [chain.name for chain in table.chains]
            ours = [name for name in names if name == _CONNTRACK_CHAIN or name.startswith(_CHAIN_PREFIX)]
            jumps = {name: self._jump_to(name) for name in ours}
        if not ours:
            return []

        def apply(table: Any) -> None:
            for chain in ours:
                for hook in Hook:
                    while _jumps_to(table, hook.name, chain):
                        table.delete_entry(hook.name, jumps[chain], _whole(jumps[chain]))
                table.flush_entries(chain)
                table.delete_chain(chain)

        self.commit(apply)
        return ours


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


def _chain(number: int, hook: Hook) -> str:
    return f"{_CHAIN_PREFIX}{number}-{hook.value}"


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
