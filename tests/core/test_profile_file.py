"""A profile file sets sysctls on top of Linux's defaults, and says what is wrong with it."""

import tomllib
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.core.profile_file import parse_profile


def parsed(text: str) -> Any:
    return parse_profile(tomllib.loads(text), name="mine")


def test_a_file_sets_sysctls_on_top_of_the_defaults() -> None:
    profile = parsed(
        """
        description = "what our fleet runs"
        [sysctls]
        tcp_retries2 = 8
        net.ipv4.tcp_rto_max_ms = 5000
        "net.ipv4.tcp_sack" = false
        tcp_congestion_control = ["bbr", "cubic"]
        tcp_fin_timeout = { value = 30, source = "fleet.conf" }
        """
    )
    settings = profile.settings()
    assert (settings.retries2, settings.rto_max_ms, settings.sack, settings.fin_timeout_s) == (8, 5000, False, 30)
    pins = {pin.sysctl: pin for pin in profile.pins}
    assert pins["net.ipv4.tcp_congestion_control"].values == ("bbr", "cubic")
    assert pins["net.ipv4.tcp_fin_timeout"].source == "fleet.conf"
    assert (profile.name, profile.description) == ("mine", "what our fleet runs")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sysctls]\ntcp_retires2 = 8", "did you mean net.ipv4.tcp_retries2?"),
        ("[sysctl]\ntcp_retries2 = 8", "did you mean sysctls?"),
        ("[sysctls]\ntcp_retries2 = 8.5", "tcp_retries2"),
        ("[sysctls]\ntcp_retries2 = []", "tcp_retries2"),
        ("[sysctls]\ntcp_retries2 = 'many'", "whole number"),
        ("sysctls = 3", "[sysctls]"),
        ("[sysctls]\ntcp_sack = 1\n'net.ipv4.tcp_sack' = 0", "set twice"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(text)
    assert said in str(caught.value)
