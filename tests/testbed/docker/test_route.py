"""Routes through the router, in a namespace in place of a container."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from lab.core.errors import UsageError
from lab.testbed.agent.ethtool import Offload, read_offloads
from lab.testbed.docker.inner import route
from tests.testbed.isolated import isolated, until


def make_link() -> None:
    """What a container finds: an interface with an address and a default route."""
    for command in (
        "link add eth0 type veth peer name other",
        "link set other up",
        "link set eth0 up",
        "address add 192.0.2.10/24 dev eth0",
        "address add 2001:db8:1::10/64 dev eth0 nodad",
        "route add default via 192.0.2.254",
    ):
        subprocess.run(["ip", *command.split()], check=True)


def route_to(address: str) -> str:
    return subprocess.run(["ip", "route", "get", address], capture_output=True, text=True, check=True).stdout


@isolated
def test_what_goes_to_the_other_side_goes_by_way_of_the_router() -> None:
    make_link()

    route.set_routes(["198.51.100.0/24"], "192.0.2.1")
    route.set_routes(["198.51.100.0/24"], "192.0.2.1")  # again, as when its container was started again

    assert "via 192.0.2.1 dev eth0" in route_to("198.51.100.20")
    assert "via 192.0.2.254 dev eth0" in route_to("203.0.113.1")


@isolated
def test_the_interface_is_the_one_on_whose_network_the_gateway_is() -> None:
    make_link()

    assert route.interface_towards("192.0.2.1") == "eth0"
    assert route.interface_towards("2001:db8:1::1") == "eth0"
    with pytest.raises(UsageError, match=r"203\.0\.113\.1 is on no network"):
        route.interface_towards("203.0.113.1")


@isolated
def test_a_gateway_that_cannot_be_reached_is_a_mistake() -> None:
    make_link()

    with pytest.raises(UsageError, match=r"refuses 198\.51\.100\.0/24 via 203\.0\.113\.1"):
        route.set_routes(["198.51.100.0/24"], "203.0.113.1")


@isolated
def test_it_stays_until_told_and_has_said_that_it_is_ready() -> None:
    make_link()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)

    def end_it_once_ready() -> None:
        # The first process of a namespace never sees a signal that comes before it has blocked it, nor one that the
        # kernel gives to a thread that has not.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        until(route.READY.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_it_once_ready).start()

    assert route.main(["--to", "198.51.100.0/24", "--via", "192.0.2.1"]) == 0
    assert route.READY.exists()
    assert read_offloads("eth0") == dict.fromkeys(Offload, False)
    assert "via 192.0.2.1" in route_to("198.51.100.20")


@isolated
def test_without_the_capability_it_says_which() -> None:
    make_link()
    command = [sys.executable, "-m", "lab.testbed.docker.inner.route", "--to", "198.51.100.0/24", "--via", "192.0.2.1"]

    done = subprocess.run(
        ["setpriv", "--bounding-set=-net_admin", *command], capture_output=True, text=True, check=False
    )

    assert done.returncode == 5
    assert "cap_add: [NET_ADMIN]" in done.stderr
