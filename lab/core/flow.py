"""One TCP connection and its two ways."""

import enum
from typing import NamedTuple


class Direction(enum.Enum):
    """Which way a segment travels."""

    FORWARD = "forward"
    """Client to server."""

    RETURN = "return"
    """Server to client."""

    @property
    def opposite(self) -> "Direction":
        """The other way."""
        return Direction.RETURN if self is Direction.FORWARD else Direction.FORWARD


class Endpoint(NamedTuple):
    """One end of a flow."""

    address: str
    """IPv4 dotted quad, or IPv6 in its short form, without zone or brackets."""

    port: int
    """TCP port, 0 to 65535."""

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class FourTuple(NamedTuple):
    """The identity of one flow."""

    client: Endpoint
    """The side that opened the connection."""

    server: Endpoint
    """The side that accepted it."""

    @property
    def ipv6(self) -> bool:
        """Whether the flow runs over IPv6."""
        return ":" in self.client.address

    def ends(self, direction: Direction) -> tuple[Endpoint, Endpoint]:
        """Source and destination of segments that travel in ``direction``."""
        if direction is Direction.FORWARD:
            return self.client, self.server
        return self.server, self.client

    def direction_of(self, source: Endpoint, destination: Endpoint) -> Direction | None:
        """The direction of a segment with these ends, or None where it belongs to another flow."""
        if (source, destination) == (self.client, self.server):
            return Direction.FORWARD
        if (source, destination) == (self.server, self.client):
            return Direction.RETURN
        return None

    def __str__(self) -> str:
        return f"{self.client} > {self.server}"
