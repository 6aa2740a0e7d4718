"""The lab's own acknowledgment: one that no receiver takes, and that is known again when it comes out."""

import socket
import struct

import pytest

from lab.core.flow import Endpoint
from lab.core.hole import is_nudge
from lab.core.segment import Segment
from lab.testbed.counters import delta, read_counters
from lab.testbed.nudge import acknowledgment, nudge
from tests.testbed.isolated import isolated

ENDS = {
    socket.AF_INET: (Endpoint("192.0.2.10", 40000), Endpoint("198.51.100.20", 5000)),
    socket.AF_INET6: (Endpoint("2001:db8:1::10", 40000), Endpoint("2001:db8:2::20", 5000)),
}


@pytest.mark.parametrize("family", list(ENDS))
def test_the_checksum_over_header_and_addresses_is_wrong(family: socket.AddressFamily) -> None:
    source, destination = ENDS[family]
    header = acknowledgment(source, destination, family)
    addresses = socket.inet_pton(family, source.address) + socket.inet_pton(family, destination.address)
    # RFC 9293 section 3.1: protocol and length are the same two words in both families' pseudo headers.
    octets = addresses + struct.pack("!HH", socket.IPPROTO_TCP, len(header)) + header

    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    assert total % 0xFFFF in (1, 0xFFFE)
    assert len(header) == 20


def test_it_is_an_acknowledgment_that_a_receiver_drops() -> None:
    source, destination = ENDS[socket.AF_INET]
    sport, dport, seq, ack, offset, flags, window, _, urgent = struct.unpack(
        "!HHIIBBHHH", acknowledgment(source, destination, socket.AF_INET)
    )

    assert (sport, dport) == (40000, 5000)
    assert (seq, ack, offset >> 4, window, urgent) == (0, 0, 5, 0, 0)
    assert is_nudge(Segment(0.0, source, destination, seq, ack, flags, window, length=0))


@isolated
def test_it_reaches_the_other_end_as_it_was_made() -> None:
    here = Endpoint("127.0.0.1", 40000)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as tap:
        tap.settimeout(5)
        nudge(here, Endpoint("127.0.0.1", 5000))
        packet = tap.recv(4096)

    assert packet[20:] == acknowledgment(here, Endpoint("127.0.0.1", 5000), socket.AF_INET)


@isolated
def test_a_connection_that_it_reaches_answers_nothing_and_a_closed_port_neither() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    here, there = Endpoint(*near.getsockname()), Endpoint(*far.getsockname())
    before = read_counters()
    nudge(here, there)
    nudge(here, Endpoint("127.0.0.1", 1))
    moved = delta(before, read_counters())

    assert moved["TcpInCsumErrors"] == 2
    assert moved["TcpOutSegs"] == moved["TcpOutRsts"] == 0


def test_an_address_that_is_not_this_machines_is_refused() -> None:
    with pytest.raises(OSError, match=r"assign requested address|not permitted"):
        nudge(Endpoint("192.0.2.10", 40000), Endpoint("198.51.100.20", 5000))
