"""Settings are read from sysctls; what a kernel lacks behaves as it did before the knob."""

import pytest

from lab.core.errors import UsageError
from lab.core.kernel import KNOBS, LINUX_DEFAULTS, KernelSettings, from_sysctls

DEFAULTS = {
    "net.ipv4.tcp_retries1": "3",
    "net.ipv4.tcp_retries2": "15",
    "net.ipv4.tcp_rto_min_us": "200000",
    "net.ipv4.tcp_rto_max_ms": "120000",
    "net.ipv4.tcp_syn_retries": "6",
    "net.ipv4.tcp_syn_linear_timeouts": "4",
    "net.ipv4.tcp_synack_retries": "5",
    "net.ipv4.tcp_orphan_retries": "0",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_keepalive_intvl": "75",
    "net.ipv4.tcp_keepalive_probes": "9",
    "net.ipv4.tcp_early_retrans": "3",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_thin_linear_timeouts": "0",
}
"""As Linux 6.18 shows them in a new namespace."""


def test_a_new_namespace_has_linux_defaults() -> None:
    assert {knob.sysctl for knob in KNOBS} == set(DEFAULTS)
    assert from_sysctls(DEFAULTS) == LINUX_DEFAULTS


def test_every_knob_reaches_its_field() -> None:
    for knob in KNOBS:
        changed = from_sysctls(DEFAULTS | {knob.sysctl: "0" if knob.field == "sack" else "1"})
        differing = {k.field for k in KNOBS if getattr(changed, k.field) != getattr(LINUX_DEFAULTS, k.field)}
        assert differing == {knob.field}


def test_a_kernel_without_linear_timeouts_backs_off_at_once() -> None:
    old = {name: value for name, value in DEFAULTS.items() if name != "net.ipv4.tcp_syn_linear_timeouts"}
    assert from_sysctls(old).syn_linear_timeouts == 0


def test_a_kernel_without_rto_knobs_has_the_constants() -> None:
    old = {name: value for name, value in DEFAULTS.items() if "_rto_" not in name}
    assert from_sysctls(old) == LINUX_DEFAULTS


def test_hz_comes_from_the_caller() -> None:
    assert from_sysctls(DEFAULTS, hz=1000).hz == 1000


def test_overrides_leave_the_rest_alone() -> None:
    settings = KernelSettings(retries2=4, hz=300).with_sysctls({"net/ipv4/tcp_sack": 0, "net.core.somaxconn": "9"})
    assert settings == KernelSettings(retries2=4, hz=300, sack=False)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="tcp_retries2"):
        from_sysctls({"net.ipv4.tcp_retries2": "many"})
