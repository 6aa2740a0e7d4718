import struct

import pytest

from lab.core.flow import Endpoint
from lab.core.icmp import IcmpMessage
from lab.core.segment import Segment
from lab.pcap.ip import Decoder
from lab.pcap.link import Payload
from tests.pcap import build

TIMESTAMPS = b"\x01\x01\x08\x0a" + struct.pack(">II", 7, 9)
SACK = b"\x01\x01\x05\x12" + struct.pack(">IIII", 100, 200, 300, 400)


def decode(packet: bytes, length: int | None = None, decoder: Decoder | None = None) -> Segment | IcmpMessage | None:
    ethertype = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    return (decoder or Decoder()).decode(1.5, packet, len(packet) if length is None else length, Payload(0, ethertype))


def segment(packet: bytes, length: int | None = None) -> Segment:
    found = decode(packet, length)
    assert isinstance(found, Segment)
    return found


def test_every_field_of_a_segment() -> None:
    packet = build.ipv4(build.tcp(seq=5, ack=6, flags=0x18, options=TIMESTAMPS, payload=b"hello"))

    assert segment(packet) == Segment(
        1.5, Endpoint("192.0.2.1", 40000), Endpoint("198.51.100.1", 5000), 5, 6, 0x18, 500, 5, (), (7, 9), 77, 64
    )


def test_the_fast_path_says_what_the_general_one_says() -> None:
    for options in (b"", TIMESTAMPS, TIMESTAMPS + SACK[2:] + bytes(2), SACK + bytes(2)):
        packet = build.ipv4(build.tcp(seq=5, options=options, payload=b"hello"))
        frame = build.ethernet(packet)

        assert Decoder().plain_ethernet(1.5, frame, len(frame)) == segment(packet)


@pytest.mark.parametrize(
    "packet",
    [
        build.ipv4(build.tcp(), options=b"\x01" * 4),
        build.ipv4(bytes(40), protocol=17),
        build.ipv4(build.tcp(), total=0),
        build.ipv4(build.tcp(), total=25),
        build.ipv4(build.tcp(), total=9000),
        build.ipv4(build.tcp(), fragment=1),
        build.ipv6(build.tcp()),
        build.ipv4(build.tcp())[:39],
    ],
)
def test_the_fast_path_leaves_what_is_not_plain(packet: bytes) -> None:
    frame = build.ethernet(packet)

    assert Decoder().plain_ethernet(1.5, frame, len(frame)) is None


def test_options_are_found_in_any_order() -> None:
    found = segment(build.ipv4(build.tcp(options=SACK[2:] + TIMESTAMPS + bytes(2))))

    assert found.sack == ((100, 200), (300, 400))
    assert found.timestamps == (7, 9)


@pytest.mark.parametrize(
    "options", [b"\x08\x00\x00\x00", b"\x08\xff\x00\x00", b"\x05\x03\x00\x00", b"\x01\x01\x01\x08"]
)
def test_damaged_options_are_passed_over(options: bytes) -> None:
    found = segment(build.ipv4(build.tcp(options=options, payload=b"x")))

    assert (found.length, found.sack, found.timestamps) == (1, (), None)


def test_ethernet_padding_is_no_payload() -> None:
    assert segment(build.ipv4(build.tcp()) + bytes(6)).length == 0


def test_a_snapped_packet_keeps_its_length() -> None:
    packet = build.ipv4(build.tcp(payload=bytes(1000)))

    assert segment(packet[:60], len(packet)).length == 1000


def test_an_offloaded_packet_without_total_length_has_the_length_on_the_wire() -> None:
    packet = build.ipv4(build.tcp(payload=bytes(70000)), total=0)

    assert segment(packet[:100], len(packet)).length == 70000


def test_a_total_length_beyond_the_wire_is_damage() -> None:
    assert segment(build.ipv4(build.tcp(payload=b"abc"), total=9000)).length == 3


def test_ipv4_options_and_the_first_fragment() -> None:
    assert segment(build.ipv4(build.tcp(payload=b"abc"), options=b"\x01" * 8, fragment=0x2000)).length == 3


def test_later_fragments_are_counted() -> None:
    decoder = Decoder()

    assert decode(build.ipv4(bytes(40), fragment=5), decoder=decoder) is None
    assert decode(build.ipv6(b"\x06\x00\x00\x10" + bytes(44), following=44), decoder=decoder) is None
    assert decoder.fragments == 2


def test_ipv6_behind_extension_headers() -> None:
    hop_by_hop = b"\x2c\x00" + bytes(6)
    fragment = b"\x33\x00\x00\x01" + bytes(4)
    authentication = b"\x06\x04" + bytes(22)
    found = segment(build.ipv6(hop_by_hop + fragment + authentication + build.tcp(payload=b"abc"), following=0))

    assert (found.source.address, found.length, found.ip_id) == ("2001:db8::1", 3, None)


def test_an_ipv6_jumbogram_has_the_length_on_the_wire() -> None:
    packet = build.ipv6(build.tcp(payload=bytes(70000)), length=0)

    assert segment(packet[:200], len(packet)).length == 70000


@pytest.mark.parametrize(
    "packet",
    [
        build.ipv4(build.tcp())[:30],
        build.ipv4(build.tcp()[:12]),
        build.ipv4(b"\x00" * 20),
        b"\x41" + build.ipv4(build.tcp())[1:],
        build.ipv6(build.tcp())[:50],
        build.ipv6(b"\x00\x00" + bytes(6), following=0),
        build.ipv6((b"\x3c\x00" + bytes(6)) * 40, following=60),
    ],
)
def test_malformed_packets_are_counted(packet: bytes) -> None:
    decoder = Decoder()

    assert decode(packet, decoder=decoder) is None
    assert decoder.malformed == 1


def test_icmp_tells_which_segment_it_complains_about() -> None:
    quoted = build.ipv4(build.tcp(seq=99))[:28]
    found = decode(build.ipv4(b"\x03\x01" + bytes(6) + quoted, protocol=1, ends=("192.0.2.254", "192.0.2.1")))

    assert isinstance(found, IcmpMessage)
    assert (found.sender, found.seq, found.meaning) == ("192.0.2.254", 99, "host unreachable")
    assert (found.source, found.destination) == (Endpoint("192.0.2.1", 40000), Endpoint("198.51.100.1", 5000))


def test_icmpv6_too() -> None:
    quoted = build.ipv6(build.tcp(seq=99))
    found = decode(build.ipv6(b"\x02\x00" + bytes(6) + quoted, following=58))

    assert isinstance(found, IcmpMessage)
    assert (found.seq, found.meaning) == (99, "packet too big")


@pytest.mark.parametrize(
    "body",
    [b"\x08\x00" + bytes(40), b"\x03\x01" + bytes(6), b"\x03\x01" + bytes(7) + build.ipv4(bytes(8), protocol=17)],
)
def test_other_icmp_is_only_counted(body: bytes) -> None:
    decoder = Decoder()

    assert decode(build.ipv4(body, protocol=1), decoder=decoder) is None
    assert decoder.seen == {"ICMP": 1}
