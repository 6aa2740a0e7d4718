"""Frames of rare link types, dissected by scapy down to the IP packet."""

from collections.abc import Callable

from lab.core.errors import UsageError
from lab.pcap.link import ETHERTYPE_IPV4, ETHERTYPE_IPV6


def packet_finder(link_type: int) -> Callable[[bytes], tuple[int, bytes] | None]:
    """A function from a frame to EtherType and octets of its IP packet, or None where it holds none.

    Args:
        link_type: LINKTYPE_ value.

    Raises:
        UsageError: scapy does not know the link type either.
    """
    import scapy.layers.all  # noqa: F401 - registers the link types; slow, so only here
    from scapy.config import conf
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import IPv6

    layer = conf.l2types.num2layer.get(link_type)
    if layer is None:
        raise UsageError(
            f"expected a capture of a link type that can be read, saw link type {link_type}.",
            fix="capture on an Ethernet or loopback interface, or on 'any'.",
        )

    def find(frame: bytes) -> tuple[int, bytes] | None:
        try:
            dissected = layer(frame)
            for ethertype, kind in ((ETHERTYPE_IPV4, IP), (ETHERTYPE_IPV6, IPv6)):
                if kind in dissected:
                    return ethertype, bytes(dissected[kind].original)
        except Exception:  # noqa: BLE001 - dissectors raise whatever they like on damaged input
            return None
        return None

    return find
