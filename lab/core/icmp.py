"""An ICMP or ICMPv6 message that speaks of a TCP segment."""

from dataclasses import dataclass

from lab.core.flow import Endpoint


@dataclass(frozen=True, slots=True)
class IcmpMessage:
    """One message with the start of the packet that it complains about."""

    time_s: float
    """Seconds, on the same clock as the segments around it."""

    sender: str
    """Address of the node that complains."""

    ipv6: bool
    """Whether type and code are ICMPv6's."""

    type: int
    code: int

    source: Endpoint
    """Sender of the quoted TCP segment."""

    destination: Endpoint
    """Receiver of the quoted TCP segment."""

    seq: int
    """Its sequence number."""

    @property
    def meaning(self) -> str:
        """What the message says, in a few words (RFC 792, RFC 1122 section 3.2.2.1, RFC 4443)."""
        names = _V6 if self.ipv6 else _V4
        exact = names.get((self.type, self.code)) or names.get((self.type, -1))
        return exact or f"ICMP type {self.type} code {self.code}"


_V4 = {
    (3, 0): "network unreachable",
    (3, 1): "host unreachable",
    (3, 2): "protocol unreachable",
    (3, 3): "port unreachable",
    (3, 4): "fragmentation needed",
    (3, 9): "network administratively prohibited",
    (3, 10): "host administratively prohibited",
    (3, 13): "communication administratively prohibited",
    (3, -1): "destination unreachable",
    (4, -1): "source quench",
    (5, -1): "redirect",
    (11, -1): "time exceeded",
    (12, -1): "parameter problem",
}

_V6 = {
    (1, 0): "no route to destination",
    (1, 1): "communication administratively prohibited",
    (1, 3): "address unreachable",
    (1, 4): "port unreachable",
    (1, -1): "destination unreachable",
    (2, -1): "packet too big",
    (3, -1): "time exceeded",
    (4, -1): "parameter problem",
}
