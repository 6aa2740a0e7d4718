"""The way out of a testbed, to a far end that the lab neither starts nor looks into."""

from dataclasses import dataclass

from lab.core.flow import Endpoint


@dataclass(frozen=True, slots=True)
class Uplink:
    """A server outside of the testbed, known by its address alone."""

    host: str
    """As the user named it: a name, which resolves to ``address`` in the client, or that address."""

    port: int
    """Its TCP port."""

    address: str
    """IPv4 dotted quad, or IPv6 in its short form."""

    @property
    def endpoint(self) -> Endpoint:
        """The far end of the flow, as the client has it."""
        return Endpoint(self.address, self.port)

    @property
    def ipv6(self) -> bool:
        """Whether it is reached over IPv6."""
        return ":" in self.address

    @property
    def named(self) -> bool:
        """Whether the host is a name, which the client has to resolve."""
        return self.host != self.address

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.address})" if self.named else str(self.endpoint)
