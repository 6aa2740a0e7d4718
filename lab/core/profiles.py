"""Kernel profiles: every setting that an outcome depends on, as data, each with where it comes from."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.giveup import predict
from lab.core.kernel import KNOBS, LINUX_DEFAULTS, KernelSettings
from lab.core.prediction import GiveUp, Situation

IPV4 = "net.ipv4."

FIRST_KERNEL = {knob.sysctl: knob.since for knob in KNOBS if knob.since is not None}

KNOWN_SYSCTLS = (
    *(knob.sysctl for knob in KNOBS),
    *(
        IPV4 + name
        for name in (
            "ip_local_port_range",
            "tcp_autocorking",
            "tcp_congestion_control",
            "tcp_ecn",
            "tcp_frto",
            "tcp_max_orphans",
            "tcp_mtu_probing",
            "tcp_no_metrics_save",
            "tcp_recovery",
            "tcp_rmem",
            "tcp_slow_start_after_idle",
            "tcp_timestamps",
            "tcp_tw_reuse",
            "tcp_window_scaling",
            "tcp_wmem",
        )
    ),
)
"""What a profile may set: the knobs of the model, and what else shapes a flow in its namespace."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One sysctl that a profile sets."""

    sysctl: str
    """Name with dots."""

    values: tuple[str, ...]
    """In order of preference; the first one that the kernel takes."""

    source: str
    """Where the value comes from."""

    @property
    def optional(self) -> bool:
        """Whether a kernel that the lab supports may lack it."""
        return self.sysctl in FIRST_KERNEL

    @property
    def since(self) -> str | None:
        """First kernel that has it, None where every supported one does."""
        return FIRST_KERNEL.get(self.sysctl)


@dataclass(frozen=True, slots=True)
class Profile:
    """Kernel settings under a name."""

    name: str
    description: str
    pins: tuple[Pin, ...]
    without: Mapping[str, tuple[Pin, ...]]
    """What takes the place of pins where the kernel lacks the sysctl that is the key."""

    def resolve(self, available: Collection[str] | None = None) -> tuple[Pin, ...]:
        """What to set on a kernel.

        Args:
            available: Sysctls that it has; None for all.

        Returns:
            The pins that it can take, one per sysctl, with substitutes for what it lacks.
        """
        if available is None:
            return self.pins
        chosen = {pin.sysctl: pin for pin in self.pins}
        for pin in self.lacking(available):
            chosen |= {other.sysctl: other for other in self.without.get(pin.sysctl, ())}
        return tuple(pin for pin in chosen.values() if not pin.optional or pin.sysctl in available)

    def lacking(self, available: Collection[str]) -> tuple[Pin, ...]:
        """The optional pins that this kernel cannot take."""
        return tuple(pin for pin in self.pins if pin.optional and pin.sysctl not in available)

    def unmet(self, available: Collection[str]) -> tuple[Pin, ...]:
        """The pins that this kernel cannot take, that change its behaviour, and that have no substitute.

        With any, the profile is unsupported there.
        """
        return tuple(
            pin
            for pin in self.lacking(available)
            if pin.sysctl not in self.without
            and LINUX_DEFAULTS.with_sysctls({pin.sysctl: pin.values[0]}) != LINUX_DEFAULTS
        )

    def settings(
        self, available: Collection[str] | None = None, *, on: KernelSettings = LINUX_DEFAULTS
    ) -> KernelSettings:
        """What the model sees of a namespace with this profile.

        Args:
            available: Sysctls that the kernel has; None for all.
            on: Settings of a namespace that nobody changed, HZ included.
        """
        return on.with_sysctls({pin.sysctl: pin.values[0] for pin in self.resolve(available)})


def real_world(situation: Situation) -> GiveUp:
    """What the same socket would do with Linux's defaults: the figure to print beside a compressed one.

    Socket options stay, since they travel with the program; the RTO is the one that defaults give on this path.
    """
    defaults = replace(LINUX_DEFAULTS, hz=situation.settings.hz)
    return predict(replace(situation, settings=defaults, rto_s=None))


def _pins(source: str, **values: str | int | tuple[str, ...]) -> tuple[Pin, ...]:
    return tuple(
        Pin(IPV4 + name, value if isinstance(value, tuple) else (str(value),), source) for name, value in values.items()
    )


_PINNED = (
    *_pins(
        "Linux's default; where a namespace may not set it (tcp_allowed_congestion_control), reno retransmits alike",
        tcp_congestion_control=("cubic", "reno"),
    ),
    *_pins(
        "the lab: a metrics cache would carry RTT and ssthresh from one connection to the next", tcp_no_metrics_save=1
    ),
)
"""What every profile sets, so that hosts with other defaults measure the same."""

_DEFAULTS = tuple(
    Pin(knob.sysctl, (str(int(getattr(LINUX_DEFAULTS, knob.field))),), "Linux's default, ip-sysctl.rst")
    for knob in KNOBS
)


def over(base: tuple[Pin, ...], *changes: Pin) -> tuple[Pin, ...]:
    """The pins with some replaced or added, one per sysctl."""
    return tuple(({pin.sysctl: pin for pin in base} | {pin.sysctl: pin for pin in changes}).values())


LINUX = Profile(
    "linux",
    "Linux's own defaults, whatever this host has: a busy connection lasts some 15 minutes.",
    (*_PINNED, *_DEFAULTS),
    {},
)

FAST = Profile(
    "fast",
    "Time lapse: the back-off is cut off at 1 s, so that every give-up takes seconds.",
    over(
        LINUX.pins,
        *_pins("the lab: the least that the kernel takes (proc_tcp_rto_max_ms)", tcp_rto_max_ms=1000),
        *_pins("the lab: a bound of 5.4 s, so that a busy connection ends after 6.5 to 6.9 s", tcp_retries2=6),
        *_pins(
            "the lab: seconds instead of a minute or hours",
            tcp_synack_retries=1,
            tcp_fin_timeout=3,
            tcp_keepalive_time=2,
            tcp_keepalive_intvl=1,
            tcp_keepalive_probes=3,
        ),
    ),
    {
        IPV4 + "tcp_rto_max_ms": _pins(
            "the lab: without tcp_rto_max_ms only the counts are left; a bound of 3.0 s, ends after 6.4 to 6.9 s",
            tcp_retries2=3,
            tcp_orphan_retries=3,
            tcp_syn_retries=2,
        )
    },
)

STUDY_SERVER = Profile(
    "study-server",
    "The server of the published study: 11 copies of the first lost segment, gone after 141 to 150 s.",
    over(
        LINUX.pins,
        *_pins(
            "the study: copies up to 114 to 118 s after the send, steps of at most 30 s",
            tcp_retries2=10,
            tcp_rto_max_ms=30_000,
        ),
    ),
    {},
)

STUDY_SERVER_FAST = Profile(
    "study-server-fast",
    "The study's server in a thirtyfold time lapse: about ten copies, gone after some five seconds.",
    over(
        LINUX.pins,
        *_pins(
            "the lab: 30 s and 200 ms of study-server divided by thirty, its bound of 141 s nearly so (4.4 s); waits "
            "below some 20 ms lose their shape to ticks of 4 ms",
            tcp_rto_max_ms=1000,
            tcp_rto_min_us=6_700,
            tcp_retries2=5,
        ),
    ),
    {},
)

PROFILES = {profile.name: profile for profile in (LINUX, FAST, STUDY_SERVER, STUDY_SERVER_FAST)}
"""The profiles that come with the lab, by name."""


def profile_named(name: str) -> Profile:
    """The profile of that name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name not in PROFILES:
        raise UsageError(
            f"Expected one of the profiles {', '.join(PROFILES)} or a .toml file, got {name!r}.",
            fix=nearest(name, PROFILES),
        )
    return PROFILES[name]


def nearest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """The question that names the known word nearest to this one."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)
    return f"did you mean {near[0]}?"
