"""Which kernel settings each node is to have from the beginning, known before there is any node.

A container gets its sysctls at creation or never. This machine's kernel is the one that the nodes will run on, so what
it has and allows can be read here.
"""

from collections.abc import Callable, Mapping, Sequence

from lab.core.errors import Unsupported, UsageError
from lab.core.profiles import FIRST_KERNEL, Pin
from lab.run.spec import RunSpec
from lab.testbed.agent import sysctl
from lab.testbed.names import CLIENT, NODES, SERVER

_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
_ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
"""What a namespace may choose from."""

Read = Callable[[str], str]


def at_creation(spec: RunSpec, read: Read = sysctl.read) -> dict[str, dict[str, str]]:
    """Sysctls per node: at both ends what the profile pins, everywhere what the user asked for.

    Args:
        spec: What will run.
        read: Reads a sysctl of this machine.

    Raises:
        UsageError: the user asked for one that no kernel has.
    """
    available = {pin.sysctl for pin in spec.profile.pins if _has(pin.sysctl, read)}
    pinned = {pin.sysctl: _value(pin, read) for pin in spec.profile.resolve(available)}
    found: dict[str, dict[str, str]] = {}
    for node in NODES:
        extra = spec.sysctls.get(node, {})
        _require_known(node, extra, read)
        found[node] = {**(pinned if node in (CLIENT, SERVER) else {}), **extra}
    return found


def _value(pin: Pin, read: Read) -> str:
    """The first value that the kernel will take, as far as it says."""
    if pin.sysctl == _CONGESTION_CONTROL and _has(_ALLOWED, read):
        return _first_of(pin.values, read(_ALLOWED).split())
    return pin.values[0]


def _first_of(values: Sequence[str], allowed: Sequence[str]) -> str:
    return next((value for value in values if value in allowed), values[-1])


def _require_known(node: str, extra: Mapping[str, str], read: Read) -> None:
    for name in extra:
        if not _has(name, read) and name not in FIRST_KERNEL:
            raise UsageError(f"There is no sysctl {name} in the {node} node.", fix="sysctl -a lists them")


def _has(name: str, read: Read) -> bool:
    try:
        read(name)
    except Unsupported:
        return False
    return True
