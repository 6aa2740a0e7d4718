"""The kernel settings that a give-up depends on, with Linux's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from lab.core.errors import UsageError
from lab.core.timerwheel import DEFAULT_HZ


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """One network namespace's TCP settings (``Documentation/networking/ip-sysctl.rst``)."""

    retries1: int = 3
    """tcp_retries1: after it the route is doubted; never kills."""

    retries2: int = 15
    """tcp_retries2: a count that the kernel turns into a duration; for window probes a count indeed."""

    rto_min_us: int = 200_000
    """tcp_rto_min_us, microseconds (Linux 6.11)."""

    rto_max_ms: int = 120_000
    """tcp_rto_max_ms, milliseconds, at least 1000 (Linux 6.15)."""

    syn_retries: int = 6
    """tcp_syn_retries, on top of the linear timeouts."""

    syn_linear_timeouts: int = 4
    """tcp_syn_linear_timeouts: timeouts of a SYN without back-off (Linux 6.5; none before)."""

    synack_retries: int = 5
    """tcp_synack_retries."""

    orphan_retries: int = 0
    """tcp_orphan_retries; 0 means 8 as long as the RTO is below its maximum."""

    fin_timeout_s: int = 60
    """tcp_fin_timeout, seconds."""

    keepalive_time_s: int = 7200
    """tcp_keepalive_time, seconds of silence before the first probe."""

    keepalive_intvl_s: int = 75
    """tcp_keepalive_intvl, seconds between probes."""

    keepalive_probes: int = 9
    """tcp_keepalive_probes."""

    early_retrans: int = 3
    """tcp_early_retrans: 3 and 4 switch the tail-loss probe on."""

    sack: bool = True
    """tcp_sack; without it there is no tail-loss probe."""

    thin_linear_timeouts: bool = False
    """tcp_thin_linear_timeouts: the first six timeouts of a thin stream do not back off."""

    hz: int = DEFAULT_HZ
    """CONFIG_HZ, jiffies per second; not a sysctl."""

    @property
    def rto_max_s(self) -> float:
        """Largest timeout, seconds."""
        return self.rto_max_ms / 1000

    def with_sysctls(self, sysctls: Mapping[str, str | int]) -> "KernelSettings":
        """These settings with some sysctls changed; names that no give-up depends on are passed over.

        Args:
            sysctls: Names with dots or slashes to values as /proc shows them.

        Raises:
            UsageError: a value is not a number.
        """
        changes: dict[str, int | bool] = {}
        for name, value in sysctls.items():
            field = _FIELD_OF.get(name.replace("/", "."))
            if field is not None:
                number = _number(name, value)
                changes[field] = bool(number) if isinstance(getattr(self, field), bool) else number
        return replace(self, **changes)  # type: ignore[arg-type]  # fields are int or bool, by the table below


class Knob(NamedTuple):
    """One sysctl behind a field of ``KernelSettings``."""

    sysctl: str
    """Name with dots."""

    field: str
    """Field of ``KernelSettings``."""

    since: str | None = None
    """First kernel that has it, None where every supported one does."""

    before: int | None = None
    """What kernels without it behave like, where that is not the default of today."""


KNOBS = (
    Knob("net.ipv4.tcp_retries1", "retries1"),
    Knob("net.ipv4.tcp_retries2", "retries2"),
    Knob("net.ipv4.tcp_rto_min_us", "rto_min_us", since="6.11"),
    Knob("net.ipv4.tcp_rto_max_ms", "rto_max_ms", since="6.15"),
    Knob("net.ipv4.tcp_syn_retries", "syn_retries"),
    Knob("net.ipv4.tcp_syn_linear_timeouts", "syn_linear_timeouts", since="6.5", before=0),
    Knob("net.ipv4.tcp_synack_retries", "synack_retries"),
    Knob("net.ipv4.tcp_orphan_retries", "orphan_retries"),
    Knob("net.ipv4.tcp_fin_timeout", "fin_timeout_s"),
    Knob("net.ipv4.tcp_keepalive_time", "keepalive_time_s"),
    Knob("net.ipv4.tcp_keepalive_intvl", "keepalive_intvl_s"),
    Knob("net.ipv4.tcp_keepalive_probes", "keepalive_probes"),
    Knob("net.ipv4.tcp_early_retrans", "early_retrans"),
    Knob("net.ipv4.tcp_sack", "sack"),
    Knob("net.ipv4.tcp_thin_linear_timeouts", "thin_linear_timeouts"),
)
"""Every sysctl that the model reads: what a testbed has to read back and a record has to keep."""

_FIELD_OF = {knob.sysctl: knob.field for knob in KNOBS}

assert set(_FIELD_OF.values()) | {"hz"} == {f.name for f in fields(KernelSettings)}

LINUX_DEFAULTS = KernelSettings()
"""What a namespace has that nobody changed."""


def from_sysctls(sysctls: Mapping[str, str | int], *, hz: int = DEFAULT_HZ) -> KernelSettings:
    """The settings of a kernel whose sysctls were read; a missing one means that this kernel does not have it.

    Args:
        sysctls: Names with dots to values; all of ``KNOBS`` that exist.
        hz: CONFIG_HZ.

    Raises:
        UsageError: a value is not a number.
    """
    lacking = {k.sysctl: k.before for k in KNOBS if k.before is not None and k.sysctl not in sysctls}
    return KernelSettings(hz=hz).with_sysctls({**lacking, **sysctls})


def _number(name: str, value: str | int) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"Expected a whole number for {name}, got {value!r}.") from None
