"""What the nodes and their links are called, on every backend."""

from dataclasses import dataclass
from typing import Final

CLIENT: Final = "client"
ROUTER: Final = "router"
SERVER: Final = "server"
NODES: Final = (CLIENT, ROUTER, SERVER)

LEFT: Final = "left"
"""The link between client and router, and the router's side towards the client."""

RIGHT: Final = "right"
"""The link between router and server."""

UPLINK: Final = "uplink"
"""The link between router and the outside, where there is one."""

NAME_SERVER: Final = "127.0.0.11"
"""Where an engine itself answers names, in every network namespace that it makes."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """What the other nodes know a node by."""

    ipv4: str
    ipv6: str
