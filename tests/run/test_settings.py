"""Which settings a node gets at its creation, read from a machine that is made up."""

import pytest

from lab.core.errors import Unsupported, UsageError
from lab.core.profiles import profile_named
from lab.run.settings import at_creation
from tests.run.test_spec import spec

CONTROL, ALLOWED = "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_allowed_congestion_control"
FAST = profile_named("fast")
MACHINE = {pin.sysctl: pin.values[0] for pin in FAST.pins} | {ALLOWED: "reno cubic"}


def machine(**changes: str | None) -> "dict[str, str]":
    return {name: value for name, value in (MACHINE | changes).items() if value is not None}


def settings(has: dict[str, str], **sysctls: dict[str, str]) -> dict[str, dict[str, str]]:
    def read(name: str) -> str:
        if name not in has:
            raise Unsupported(f"This kernel has no {name}.")
        return has[name]

    return at_creation(spec(profile=FAST, sysctls=sysctls), read)


def test_both_ends_get_the_profile_and_the_router_nothing_of_it() -> None:
    found = settings(machine())

    assert found["client"] == found["server"]
    assert set(found["client"]) == {pin.sysctl for pin in FAST.pins}
    assert found["router"] == {}


def test_what_the_user_asks_for_comes_after_the_profile() -> None:
    found = settings(machine(), client={"net.ipv4.tcp_retries2": "3"})

    assert (found["client"]["net.ipv4.tcp_retries2"], found["server"]["net.ipv4.tcp_retries2"]) == (
        "3",
        MACHINE["net.ipv4.tcp_retries2"],
    )


def test_a_congestion_control_that_a_namespace_may_not_have_gives_way_to_one_that_it_may() -> None:
    assert settings(machine())["client"][CONTROL] == "cubic"
    assert settings(machine(**{ALLOWED: "reno"}))["client"][CONTROL] == "reno"


def test_what_the_kernel_lacks_is_not_asked_for() -> None:
    assert "net.ipv4.tcp_rto_max_ms" not in settings(machine(**{"net.ipv4.tcp_rto_max_ms": None}))["client"]


def test_a_sysctl_that_no_kernel_has_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"no sysctl net\.nonsense in the router"):
        settings(machine(), router={"net.nonsense": "1"})
