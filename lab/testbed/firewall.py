"""A fault's rules: who may build them, put them in force and take them back, and what they dropped.

Every fault has a chain of its own in each hook that it needs, with one rule per direction. The chains are built first
and nothing jumps to them; the cut is the commit of the jumps, the heal the commit that removes them. So both directions
change in one step, and the counters outlive the heal: the rules are not removed, so nothing that they dropped between a
reading and a removal is lost.
"""

import ipaddress
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported, UsageError
from lab.core.fault import Fault, Matched
from lab.core.flow import Direction
from lab.testbed.hooks import hooks
from lab.testbed.ports import CutReceipt

CHOICES = ("auto", "iptables", "nftables")
"""What ``open_firewall`` understands."""


class RuleTable(Protocol):
    """The kernel side: the faults' chains in the namespace of the process that made the object.

    A rule drops, save that of a direction that goes into a sink, which marks.
    """

    @property
    def name(self) -> str:
        """Which one: iptables or nftables."""

    def build(self, number: int, fault: Fault) -> None:
        """Make the fault's chains as ``hooks`` has them; nothing jumps to them.

        Raises:
            UsageError: a direction shall go into a sink, and the namespace has none.
        """

    def enforce(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the jumps to the chains, in front of every other rule of their hooks, all in one step."""

    def release(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the removal of the jumps; the chains and their counters stay."""

    def packets(self, number: int, fault: Fault) -> list[int]:
        """Packets that each rule matched, in the order of ``hooks``."""

    def remove(self, number: int, fault: Fault) -> None:
        """Remove the chains of a fault that is not in force, counters and all."""

    def close(self) -> None:
        """Remove everything that this object made; idempotent."""


@dataclass(slots=True)
class _Entry:
    """What became of one fault."""

    number: int
    matched: Matched
    cut: CutReceipt | None = None
    """The receipt of the cut, while it is in force."""

    healed: CutReceipt | None = None
    """The receipt of the last heal."""


class Firewall:
    """The faults of one network namespace.

    Exactly one object, in one process, owns the rules of a namespace; it must be made by that process and in that
    namespace. Faults on several flows stand side by side, and the heal of one leaves the others.
    """

    def __init__(self, table: RuleTable) -> None:
        self._table = table
        self._entries: dict[Fault, _Entry] = {}
        self._numbers = itertools.count()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Which implementation owns the rules: iptables or nftables."""
        return self._table.name

    def prepare(self, fault: Fault) -> None:
        """Build the fault's rules without putting them in force; idempotent.

        Raises:
            UsageError: no packet could ever match, whatever the flow does.
        """
        with self._lock:
            self._prepared(fault)

    def cut(self, fault: Fault) -> CutReceipt:
        """Put the fault in force, prepared or not.

        Returns:
            When it went into force; for a fault in force already, when that was.
        """
        with self._lock:
            entry = self._prepared(fault)
            if entry.cut is None:
                entry.cut = self._table.enforce(entry.number, fault)
            return entry.cut

    def heal(self, fault: Fault) -> CutReceipt:
        """Take the fault back and keep its counters.

        Returns:
            When it ended; for a fault that has been healed already, when that was.

        Raises:
            UsageError: the fault was never in force.
        """
        with self._lock:
            entry = self._entries.get(fault)
            if entry is not None and entry.cut is not None:
                entry.healed = self._table.release(entry.number, fault)
                entry.cut = None
                entry.matched = self._read(entry, fault)
            if entry is None or entry.healed is None:
                raise UsageError(f"A fault that was cut was expected; {_describe(fault)} never was.")
            return entry.healed

    def matched(self, fault: Fault) -> Matched:
        """Packets that the fault's rules have dropped since they were built, over all its cuts.

        Raises:
            UsageError: the fault was never prepared.
        """
        with self._lock:
            entry = self._entries.get(fault)
            if entry is None:
                raise UsageError(f"A fault that was prepared was expected; {_describe(fault)} never was.")
            if not self._closed:
                entry.matched = self._read(entry, fault)
            return entry.matched

    def forget(self, fault: Fault) -> None:
        """Remove the rules of a fault that is not in force, counters and all; idempotent.

        Every rule that stays makes each later change of the table slower.

        Raises:
            UsageError: the fault is in force.
        """
        with self._lock:
            entry = self._entries.get(fault)
            if entry is None or self._closed:
                return
            if entry.cut is not None:
                raise UsageError(f"A fault that is not in force was expected; {_describe(fault)} is.", fix="heal it")
            del self._entries[fault]
            self._table.remove(entry.number, fault)

    def close(self) -> None:
        """Remove every rule; ``matched`` keeps its last reading. Idempotent."""
        with self._lock:
            if self._closed:
                return
            for fault, entry in self._entries.items():
                if entry.cut is not None:
                    entry.healed, entry.cut = self._table.release(entry.number, fault), None
                entry.matched = self._read(entry, fault)
            self._closed = True
            self._table.close()

    def _prepared(self, fault: Fault) -> _Entry:
        if self._closed:
            raise UsageError("An open firewall was expected; this one has been closed.")
        entry = self._entries.get(fault)
        if entry is None:
            _check(fault)
            entry = _Entry(number=next(self._numbers), matched=Matched(forward=0, return_=0))
            self._table.build(entry.number, fault)
            self._entries[fault] = entry
        return entry

    def _read(self, entry: _Entry, fault: Fault) -> Matched:
        wanted = [direction for directions in hooks(fault).values() for direction in directions]
        counts = self._table.packets(entry.number, fault)
        if len(counts) != len(wanted):
            raise InvalidRun(
                f"{len(wanted)} rules of the lab's own were expected, {len(counts)} are there. Somebody else changed "
                f"the rules of {_describe(fault)}."
            )
        count = dict(zip(wanted, counts, strict=True))
        return Matched(forward=count.get(Direction.FORWARD, 0), return_=count.get(Direction.RETURN, 0))


def open_firewall(choice: str = "auto") -> Firewall:
    """The rules of the namespace that the calling process lives in; loads every hook that a cut needs.

    Args:
        choice: iptables, nftables, or auto: the first where this kernel has the legacy tables, else the second.

    Raises:
        UsageError: no such choice.
        Unsupported: this kernel lacks what was chosen.
        EnvironmentNotReady: a library or a privilege is missing.
    """
    if choice not in CHOICES:
        raise UsageError(f"The firewall is one of {', '.join(CHOICES)}; {choice!r} is none of them.")
    if choice != "auto":
        return Firewall(_OPENERS[choice]())
    reasons = []
    for opener in _OPENERS.values():
        try:
            return Firewall(opener())
        except (Unsupported, EnvironmentNotReady) as error:
            reasons.append(error)
    raise _neither(reasons)


def _open_iptables() -> RuleTable:
    from lab.testbed.firewall_iptables import IptablesRules

    return IptablesRules()


def _open_nftables() -> RuleTable:
    from lab.testbed.firewall_nftables import NftablesRules

    return NftablesRules()


# Imported where they are used: each loads shared libraries, which costs up to half a second.
_OPENERS: dict[str, Callable[[], RuleTable]] = {"iptables": _open_iptables, "nftables": _open_nftables}


def _neither(reasons: Sequence[LabError]) -> LabError:
    message = "Neither iptables nor nftables can be used: " + " ".join(reason.message for reason in reasons)
    for reason in reasons:
        if isinstance(reason, EnvironmentNotReady):
            return EnvironmentNotReady(message, fix=reason.fix)
    return Unsupported(message)


def _check(fault: Fault) -> None:
    """Refuse a fault whose rules no packet could match: a run would find out only at its end."""
    addresses = [_address(end.address) for end in fault.flow]
    if addresses[0].version != addresses[1].version:
        raise UsageError(f"Two addresses of one family were expected; the flow is {fault.flow}.")
    if not all(0 < end.port < 65536 for end in fault.flow):
        raise UsageError(f"TCP ports from 1 to 65535 were expected; the flow is {fault.flow}.")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or "%" in text:
        raise UsageError(f"An IPv4 or IPv6 address was expected, without zone or brackets; {text!r} is none.")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise UsageError(
            f"The addresses as the wire has them were expected; {text} is how an IPv6 socket has an IPv4 one.",
            fix=f"write {address.ipv4_mapped}",
        )
    return address


def _describe(fault: Fault) -> str:
    return f"{fault.flow} ({fault.scope.value}, {fault.direction.value}, {fault.placement.value})"
