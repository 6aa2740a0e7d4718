"""Addresses and routes by rtnetlink, in a namespace in place of a container, against what ``ip`` says of it."""

import errno
import socket
import subprocess
from dataclasses import replace

import pytest

from lab.testbed.agent.rtnetlink import IFA_F_NODAD, IFA_F_TENTATIVE, Rtnetlink, Way
from lab.testbed.docker.inner import roads
from lab.testbed.docker.inner.seat import Seat
from tests.testbed.isolated import isolated

OURS = {"192.0.2.10", "2001:db8:1::10"}


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def make_link() -> int:
    """What a container finds: an interface with an address and a default route of each family."""
    for command in (
        "link add eth0 type veth peer name other",
        "link set other up",
        "link set eth0 up",
        "address add 192.0.2.10/24 dev eth0",
        "address add 2001:db8:1::10/64 dev eth0 nodad",
        "route add default via 192.0.2.254",
        "route add default via 2001:db8:1::fe",
    ):
        ip(*command.split())
    return socket.if_nametoindex("eth0")


@isolated
def test_addresses_and_ways_out_are_those_that_the_kernel_has() -> None:
    index = make_link()
    ip("route", "add", "default", "via", "192.0.2.253", "table", "7")

    with Rtnetlink() as kernel:
        found = {one.address: one for one in kernel.addresses() if one.index == index}
        assert set(found) > OURS
        assert [found[address].prefixlen for address in sorted(OURS)] == [24, 64]
        assert set(kernel.ways()) == {Way(index, "192.0.2.254"), Way(index, "2001:db8:1::fe")}
    assert {address for nic in roads.read_nics() for address in nic.addresses} == OURS


@isolated
def test_a_tentative_address_is_used_at_once() -> None:
    index = make_link()
    ip("address", "add", "2001:db8:1::11/64", "dev", "eth0")

    with Rtnetlink() as kernel:
        tentative = next(one for one in kernel.addresses() if one.address == "2001:db8:1::11")
        assert tentative.flags & IFA_F_TENTATIVE
        kernel.delete_address(tentative)
        assert "2001:db8:1::11" not in ip("address", "show", "eth0")
        kernel.add_address(replace(tentative, flags=IFA_F_NODAD))
        now = next(one for one in kernel.addresses() if one.address == "2001:db8:1::11")
    assert (now.index, now.prefixlen, now.flags & IFA_F_TENTATIVE) == (index, 64, 0)


@isolated
def test_the_router_becomes_the_only_way_out() -> None:
    make_link()
    seat = Seat({}, {"eth0": ("192.0.2.1", "2001:db8:1::1")}, False, True, "auto", "", "")
    ip("route", "add", "default", "via", "2001:db8:1::fd", "metric", "7")

    roads._lead_through(kernel := Rtnetlink(), {socket.if_nametoindex("eth0"): seat.gateways["eth0"]})
    roads._lead_through(kernel, {socket.if_nametoindex("eth0"): seat.gateways["eth0"]})
    kernel.__exit__()

    assert "via 192.0.2.1 dev eth0" in ip("route", "get", "203.0.113.1")
    assert "via 2001:db8:1::1 dev eth0" in ip("-6", "route", "get", "2001:db8:9::1")
    assert ip("route", "show", "default").count("via") == ip("-6", "route", "show", "default").count("via") == 1


@isolated
def test_a_router_loses_its_way_out() -> None:
    index = make_link()

    with Rtnetlink() as kernel:
        roads._lead_through(kernel, {index: ()})

    assert ip("route", "show", "default") == ip("-6", "route", "show", "default") == ""


@isolated
def test_what_the_kernel_refuses_is_an_error() -> None:
    index = make_link()

    with Rtnetlink() as kernel:
        with pytest.raises(OSError, match=f"{errno.ENETUNREACH}.*unreachable"):
            kernel.replace_default(Way(index, "203.0.113.1"))
        with pytest.raises(OSError, match=f"{errno.ESRCH}.*No such"):
            kernel.delete_default(Way(index, "192.0.2.1"))
        assert len(set(kernel.ways())) == 2, "the next answer is not taken for the one that was refused"
