"""HOST:PORT becomes one address, and what no run could reach is refused before anything starts."""

import re
import socket
from typing import Any

import pytest

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.core.uplink import Uplink
from lab.run.outside import resolve


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was looked up; every name has these addresses."""
    asked: list[tuple[Any, ...]] = []

    def look_up(host: str, port: int, family: int, kind: int) -> list[tuple[Any, ...]]:
        asked.append((host, port, family))
        address = "2001:db8::9" if family == socket.AF_INET6 else "203.0.113.9"
        return [(family, kind, 6, "", (address, port)), (family, kind, 6, "", ("203.0.113.10", port))]

    monkeypatch.setattr("lab.run.outside.socket.getaddrinfo", look_up)
    return asked


def test_a_name_is_looked_up_in_the_runs_family_and_its_first_address_taken(names: list[tuple[Any, ...]]) -> None:
    assert resolve("staging.example.com:443", ipv6=False) == Uplink("staging.example.com", 443, "203.0.113.9")
    assert resolve("staging.example.com:443", ipv6=True) == Uplink("staging.example.com", 443, "2001:db8::9")
    assert [family for _, _, family in names] == [socket.AF_INET, socket.AF_INET6]


def test_an_address_is_nobodys_name_however_it_is_written(names: list[tuple[Any, ...]]) -> None:
    assert resolve("203.0.113.9:80", ipv6=False) == Uplink("203.0.113.9", 80, "203.0.113.9")
    assert resolve("[2001:DB8:0::9]:80", ipv6=True) == Uplink("2001:db8::9", 80, "2001:db8::9")
    assert names == []


@pytest.mark.parametrize(
    ("text", "ipv6", "said"),
    [
        ("staging", False, "is HOST:PORT"),
        ("staging:", False, "is HOST:PORT"),
        (":443", False, "is HOST:PORT"),
        ("staging:https", False, "is HOST:PORT"),
        ("2001:db8::9:443", True, "is HOST:PORT"),
        ("203.0.113.9:0", False, "1 to 65535"),
        ("203.0.113.9:65536", False, "1 to 65535"),
        ("203.0.113.9:80", True, "over IPv6, but 203.0.113.9 is an IPv4 address.*leave --ipv6 out"),
        ("[2001:db8::9]:80", False, "over IPv4, but .*add --ipv6"),
        ("127.0.0.1:80", False, "loopback.*--server"),
        ("[::1]:80", True, "loopback"),
        ("0.0.0.0:80", False, "no address of one host"),
        ("224.0.0.1:80", False, "no address of one host"),
        ("169.254.1.1:80", False, "link-local"),
        ("[fe80::1%eth0]:80", True, "link-local"),
        ("[::ffff:203.0.113.9]:80", True, "how an IPv6 socket writes an IPv4 address"),
        ("server:80", False, "the name of a node"),
    ],
)
def test_what_no_run_could_reach_is_refused(names: list[tuple[Any, ...]], text: str, ipv6: bool, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(text, ipv6=ipv6)

    assert re.search(said, str(caught.value)), caught.value
    assert names == [] or text.startswith("server")


def test_a_name_of_loopback_is_refused_with_its_address() -> None:
    with pytest.raises(UsageError, match=r"localhost \(127.0.0.1\) is a loopback address"):
        resolve("localhost:80", ipv6=False)


def test_a_name_that_does_not_resolve_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("lab.run.outside.socket.getaddrinfo", fail)
    with pytest.raises(
        EnvironmentNotReady, match=r"nowhere\.example has no IPv4 address here: Name or service not known"
    ):
        resolve("nowhere.example:80", ipv6=False)
