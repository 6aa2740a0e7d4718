import pytest

from lab.pcap import link
from lab.pcap.link import Payload, payload

IPV4 = b"\x45" + bytes(19)
IPV6 = b"\x60" + bytes(39)
QINQ = b"\x88\xa8\x00\x0a\x81\x00\x00\x14"
PPPOE = b"\x11\x00\x00\x07\x00\x16\x00\x21"


@pytest.mark.parametrize(
    ("link_type", "frame", "expected"),
    [
        (link.ETHERNET, bytes(12) + b"\x08\x00" + IPV4, Payload(14, 0x0800)),
        (link.ETHERNET, bytes(12) + b"\x86\xdd" + IPV6, Payload(14, 0x86DD)),
        (link.ETHERNET, bytes(12) + QINQ[4:] + b"\x08\x00" + IPV4, Payload(18, 0x0800)),
        (link.ETHERNET, bytes(12) + QINQ + b"\x08\x00" + IPV4, Payload(22, 0x0800)),
        (link.ETHERNET, bytes(12) + QINQ + b"\x88\x64" + PPPOE + IPV4, Payload(30, 0x0800, 50)),
        (link.RAW, IPV4, Payload(0, 0x0800)),
        (link.IPV6, IPV6, Payload(0, 0x86DD)),
        (link.NULL, b"\x02\x00\x00\x00" + IPV4, Payload(4, 0x0800)),
        (link.NULL, b"\x00\x00\x00\x02" + IPV4, Payload(4, 0x0800)),
        (link.LOOP, b"\x00\x00\x00\x18" + IPV6, Payload(4, 0x86DD)),
        (link.LINUX_SLL, bytes(14) + b"\x08\x00" + IPV4, Payload(16, 0x0800)),
        (link.LINUX_SLL2, b"\x86\xdd" + bytes(18) + IPV6, Payload(20, 0x86DD)),
        (link.LINUX_SLL2, b"\x81\x00" + bytes(18) + b"\x00\x05\x08\x00" + IPV4, Payload(24, 0x0800)),
        (link.ETHERNET, bytes(12) + b"\x08\x06", Payload(14, 0x0806)),
        (link.ETHERNET, bytes(13), None),
        (link.ETHERNET, bytes(12) + QINQ, None),
        (link.NULL, b"\x02", None),
        (link.NULL, b"\x07\x00\x00\x00", None),
        (link.RAW, b"", None),
        (link.RAW, b"\x00", None),
    ],
)
def test_where_the_packet_begins(link_type: int, frame: bytes, expected: Payload | None) -> None:
    assert payload(link_type, frame) == expected


def test_endless_vlan_tags_end() -> None:
    assert payload(link.ETHERNET, bytes(12) + QINQ * 100) == Payload(46, 0x88A8)
