"""What the caller and an agent in a container tell each other before the first call.

::

    agent                                     caller
    connects, Hello(node, interfaces) ----->
                                    <-------  Seat(addresses, routes ...), its ends of the calls and of the events
    does as the seat says, READY or an error ----->
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FOLDER: Final = "/run/lab"
"""Where a holder sees the folder that it shares with the caller."""

SOCKET: Final = "agents"
"""Name of the caller's listening socket in that folder."""

CAPTURES: Final = "captures"
"""Folder beside it, in which the router writes captures."""

READY: Final = "ready"


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface of a container, as its agent sees it."""

    name: str
    index: int
    addresses: tuple[str, ...]
    """IPv4 and global IPv6 addresses, without prefix lengths."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What an agent says first."""

    node: str
    nics: tuple[Nic, ...]
    environment: Mapping[str, str]
    """What the image and the engine put into the container's environment."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a node's agent has to arrange, and with what."""

    hosts: Mapping[str, str]
    """Name to address, for /etc/hosts."""

    gateways: Mapping[str, tuple[str, ...]]
    """Interface to the addresses on its link that become the only ways out: the router's at the ends, in the router the
    engine's on the uplink, and none without one."""

    leads_outside: bool
    """Keep the engine's own default route."""

    offloads: bool
    """Leave TSO, GSO and GRO on."""

    firewall: str
    left: str
    """The router's interface towards the client; elsewhere the only one."""

    right: str
    """The same towards the server; with an uplink the one that leads out."""

    at_once: tuple[str, ...] = ()
    """Services that are started before they are asked for."""

    forwards_merged: bool = False
    """Leave TSO and GSO on, and switch GRO off: what comes from outside may be merged already, and shall leave as it
    came, so that both sides of the hole show the same segments."""

    preload: tuple[str, ...] = ()
    """Modules that the node's programs will import."""
