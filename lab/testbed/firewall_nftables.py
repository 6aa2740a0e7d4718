"""Rules in nftables, through libnftables: for kernels without the legacy tables.

The library that the ``nft`` command is a shell around (libnftables(3)) is called in this process, since starting the
command costs ten times what the change does. Each call is one netlink batch, which the kernel commits as a whole or
not at all. Unlike a swap of the legacy tables, the commit does not wait for packets that entered the hook just before
it: one that another CPU is working on passes, microseconds after it.

The lab's table is its own; its hooks come before those of the mangle tables, and what it drops no later table sees.
"""

import ctypes
import ctypes.util
import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from lab.core.errors import EnvironmentNotReady, InvalidRun, LabError, Unsupported
from lab.core.fault import Fault, Scope
from lab.core.flow import Direction
from lab.testbed import sink
from lab.testbed.hooks import Hook, hooks
from lab.testbed.ports import CutReceipt

_TABLE = "inet blackhole-lab"
_PRIORITY = -160
"""Before mangle, which is at -150 (``NF_IP_PRI_MANGLE``)."""

# A mark changes a packet's way only where the chain is of the type that asks for it. Both see the ends that the socket
# knows: on the way out before an address is translated (NF_IP_PRI_NAT_DST, -100), on the way in after it has been
# translated back (NF_IP_PRI_NAT_SRC, 100).
_SINK_CHAINS = f"""
add chain {_TABLE} sink-output {{ type route hook output priority -101; policy accept; }}
add chain {_TABLE} sink-input {{ type filter hook input priority 101; policy accept; }}
"""

# Every chain exists from the start, so that the first cut loads nothing. The rule that asks for a byte count is in a
# chain that no packet enters; for as long as it exists conntrack sees, and counts, every connection (nft_ct_get_init).
_SET_UP = f"""
add table {_TABLE}
delete table {_TABLE}
add table {_TABLE}
add chain {_TABLE} forward {{ type filter hook forward priority {_PRIORITY}; policy accept; }}
add chain {_TABLE} output {{ type filter hook output priority {_PRIORITY}; policy accept; }}
add chain {_TABLE} conntrack
add rule {_TABLE} conntrack ct original bytes 0 return
"""


class NftablesRules:
    """The lab's table, one per namespace."""

    def __init__(self) -> None:
        self._nft: _Nft | None = _Nft()
        self._jumps: dict[int, list[tuple[str, int]]] = {}
        """The jumps in force, each its base chain and handle, by the number of their fault."""

        self._run(_SET_UP)

    @property
    def name(self) -> str:
        """Always nftables."""
        return "nftables"

    def build(self, number: int, fault: Fault) -> None:
        """Make the fault's chains."""
        sunk = fault.placement.sunk
        commands = [] if sunk is None else [_SINK_CHAINS]
        for hook, directions in hooks(fault).items():
            chain = f"{_TABLE} {_chain(number, hook)}"
            rules = (f"{_match(fault, direction)} counter {_verdict(fault, direction)}" for direction in directions)
            commands += [f"add chain {chain}", *(f"add rule {chain} {rule}" for rule in rules)]
        self._run("\n".join(commands))

    def enforce(self, number: int, fault: Fault) -> CutReceipt:
        """Commit the jumps to the chains, each as its hook's first rule."""
        jumps = [(_base(fault, hook), _chain(number, hook)) for hook in hooks(fault)]
        commands = "\n".join(f"insert rule {_TABLE} {base} jump {chain}" for base, chain in jumps)
        began = time.monotonic()
        echoed = self._run(commands)
        done = time.monotonic()
        rules = [thing["insert"]["rule"] for thing in echoed if "rule" in thing.get("insert", {})]
        self._jumps[number] = [(rule["chain"], rule["handle"]) for rule in rules]
        return CutReceipt(began_at=began, done_at=done)

    def release(self, number: int, fault: Fault) -> CutReceipt:  # noqa: ARG002 - the port's
        """Commit the removal of the jumps."""
        commands = "\n".join(f"delete rule {_TABLE} {base} handle {handle}" for base, handle in self._jumps[number])
        began = time.monotonic()
        self._run(commands)
        return CutReceipt(began_at=began, done_at=time.monotonic())

    def packets(self, number: int, fault: Fault) -> list[int]:
        """Packets that each rule matched."""
        counts = []
        for hook in hooks(fault):
            objects = self._run(f"list chain {_TABLE} {_chain(number, hook)}")
            rules = [thing["rule"]["expr"] for thing in objects if "rule" in thing]
            counts += [part["counter"]["packets"] for rule in rules for part in rule if "counter" in part]
        return counts

    def remove(self, number: int, fault: Fault) -> None:
        """Remove the fault's chains."""
        self._run("\n".join(f"delete chain {_TABLE} {_chain(number, hook)}" for hook in hooks(fault)))
        self._jumps.pop(number, None)

    def close(self) -> None:
        """Remove the lab's table."""
        if self._nft is not None:
            self._run(f"delete table {_TABLE}")
            self._nft.close()
            self._nft = None

    def _run(self, commands: str) -> list[dict[str, Any]]:
        assert self._nft is not None, "used after close"
        return self._nft.run(commands)


def is_usable() -> bool:
    """Whether this kernel has nftables and lets this process use it; nothing is changed."""
    try:
        nft = _Nft()
        try:
            nft.run("list tables")
        finally:
            nft.close()
    except LabError:
        return False
    return True


def remove_leftovers() -> list[str]:
    """Remove the lab's table from this namespace, whoever made it; idempotent. What was there."""
    nft = _Nft()
    try:
        there = any(f"{one['table']['family']} {one['table']['name']}" == _TABLE for one in _tables(nft))
        if there:
            nft.run(f"delete table {_TABLE}")
        return [f"table {_TABLE}"] if there else []
    finally:
        nft.close()


def _tables(nft: "_Nft") -> list[dict[str, Any]]:
    return [one for one in nft.run("list tables") if "table" in one]


def _chain(number: int, hook: Hook) -> str:
    return f"fault-{number}-{hook.value}"


def _base(fault: Fault, hook: Hook) -> str:
    return hook.value if fault.placement.sunk is None else f"sink-{hook.value}"


def _match(fault: Fault, direction: Direction) -> str:
    source, destination = fault.flow.ends(direction)
    family = "ip6" if fault.flow.ipv6 else "ip"
    addresses = f"{family} saddr {source.address} {family} daddr {destination.address}"
    ports = f" tcp sport {source.port} tcp dport {destination.port}" if fault.scope is Scope.FLOW else ""
    return f"{addresses}{ports}"


def _verdict(fault: Fault, direction: Direction) -> str:
    if direction is not fault.placement.sunk:
        return "drop"
    # The other bits are somebody else's.
    return f"meta mark set meta mark or {sink.read_mark(ipv6=fault.flow.ipv6):#x}"


_UPLINK_TABLE = "inet blackhole-lab-uplink"


class NftablesTranslation:
    """A router's way out; fulfils ``translation.Translation``.

    Args:
        interface: The one that leads out.
        addresses: The router's own there, at most one of each family.
    """

    def __init__(self, interface: str, addresses: Sequence[str]) -> None:
        self._nft: _Nft | None = _Nft()
        self._nft.run(_uplink_rules(interface, addresses))

    def close(self) -> None:
        """Remove the table."""
        if self._nft is not None:
            self._nft.run(f"delete table {_UPLINK_TABLE}")
            self._nft.close()
            self._nft = None


def _uplink_rules(interface: str, addresses: Sequence[str]) -> str:
    out, back = f"{_UPLINK_TABLE} out", f"{_UPLINK_TABLE} back"
    lines = [
        f"add table {_UPLINK_TABLE}",
        f"delete table {_UPLINK_TABLE}",
        f"add table {_UPLINK_TABLE}",
        f"add chain {out} {{ type nat hook postrouting priority 100; policy accept; }}",
        f"add chain {back} {{ type filter hook input priority {_PRIORITY}; policy accept; }}",
        f'add rule {back} iifname "{interface}" meta l4proto tcp counter drop',
    ]
    for address in addresses:
        family = "ip6" if ":" in address else "ip"
        lines.append(f'add rule {out} oifname "{interface}" snat {family} to {address}')
    return "\n".join(lines)


class _Nft:
    """A context of libnftables; its netlink socket belongs to the namespace that it was made in."""

    _OUTPUT_FLAGS = 1 << 3 | 1 << 4 | 1 << 5
    """Handles, JSON, and an echo of what was added (``enum nft_output_flags`` of nftables/libnftables.h)."""

    def __init__(self) -> None:
        _require_netlink()
        self._library = _load()
        self._context = ctypes.c_void_p(self._library.nft_ctx_new(0))
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)
        self._library.nft_ctx_output_set_flags(self._context, self._OUTPUT_FLAGS)

    def run(self, commands: str) -> list[dict[str, Any]]:
        """Commit the commands in one transaction; what they printed, as libnftables-json(5) has it."""
        failed = self._library.nft_run_cmd_from_buffer(self._context, commands.encode())
        output = self._library.nft_ctx_get_output_buffer(self._context).decode()
        message = self._library.nft_ctx_get_error_buffer(self._context).decode().strip()
        if failed:
            raise _refusal(message)
        objects: list[dict[str, Any]] = json.loads(output)["nftables"] if output.strip() else []
        return objects

    def close(self) -> None:
        self._library.nft_ctx_free(self._context)


def _require_netlink() -> None:
    """Find out gently: libnftables ends the whole process where it cannot open its socket."""
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER).close()
    except OSError as error:
        raise Unsupported(f"This kernel has no netfilter netlink: {error.strerror}.") from error


_NETLINK_NETFILTER = 12
"""``linux/netlink.h``; the socket module has no name for it."""


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libnftables.so.1")
    except OSError as error:
        raise EnvironmentNotReady(f"libnftables is missing: {error}.", fix="apt-get install nftables") from error
    context = ctypes.c_void_p
    library.nft_ctx_new.argtypes, library.nft_ctx_new.restype = [ctypes.c_uint32], context
    library.nft_ctx_free.argtypes, library.nft_ctx_free.restype = [context], None
    library.nft_ctx_output_set_flags.argtypes, library.nft_ctx_output_set_flags.restype = [context, ctypes.c_uint], None
    library.nft_run_cmd_from_buffer.argtypes = [context, ctypes.c_char_p]
    for function in (library.nft_ctx_get_output_buffer, library.nft_ctx_get_error_buffer):
        function.argtypes, function.restype = [context], ctypes.c_char_p
    return library


def _refusal(message: str) -> LabError:
    first = message.splitlines()[0] if message else "no reason given"
    if "not permitted" in message:
        return EnvironmentNotReady(
            f"nftables needs CAP_NET_ADMIN in this network namespace: {first}.",
            fix="run as root, or allow unprivileged user namespaces",
        )
    if "not supported" in message or "No such file" in message:
        return Unsupported(f"This kernel's nftables cannot hold the lab's rules: {first}.")
    return InvalidRun(f"nftables refused the rules: {first}.")
