"""A container of the user's joins a node's network: what it is made with, and what cannot be kept.

``DockerContainer`` makes its container through its Testcontainers client. In a testbed that is a ``PodClient``, so that
whatever the user's class does at its start happens as ever, in the node's network.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lab.core.errors import Unsupported, UsageError
from lab.testbed.docker.nodes import ContainerNode
from lab.testbed.names import NODES

if TYPE_CHECKING:
    from docker.models.containers import Container
    from testcontainers.core.config import ConnectionMode
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.docker_client import DockerClient

_ADDRESS = "leave it out; the host reaches the container at its own address, get_container_host_ip()"
_NAMES = "leave it out; with_network_aliases() of the other container gives that one more names"
_ALIAS = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?", re.ASCII)
_OWN = "leave it out; the testbed has networks of its own"

CONFLICTS: Mapping[str, str] = {
    "dns": "leave it out; names are in /etc/hosts",
    "extra_hosts": _NAMES,
    "hostname": _NAMES,
    "links": _NAMES,
    "mac_address": "leave it out",
    "network": _OWN,
    "network_disabled": _OWN,
    "network_mode": _OWN,
    "networking_config": _OWN,
    "publish_all_ports": _ADDRESS,
}
"""Options of a container that its network has in a testbed, and what to do instead."""


class PodClient:
    """A Testcontainers client that makes a container in a node's network.

    Args:
        inner: The container's own client, for all the rest.
        node: Whose network.
        holder: Id of the container that has the network.
        labels: What the container carries beside Testcontainers' own.
        reachable: Whether this machine reaches the container at its own address.
    """

    def __init__(
        self,
        inner: "DockerClient",
        node: ContainerNode,
        holder: str,
        labels: Mapping[str, str],
        *,
        reachable: bool = True,
    ) -> None:
        self.inner = inner
        self.node = node
        self._holder = holder
        self._labels = labels
        self._reachable = reachable

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def create(
        self,
        image: str,
        command: Any = None,
        *,
        ports: object = None,
        labels: Mapping[str, str] | None = None,
        **options: Any,
    ) -> "Container":
        """Create a container; nothing is published, since its ports are the node's."""
        from testcontainers.core.labels import create_labels

        refuse_ports(self.node.name, ports or {})
        refuse(self.node.name, options)
        return self.inner.client.containers.create(
            image,
            command=command,
            labels=create_labels(image, {**(labels or {}), **self._labels}),
            network_mode=f"container:{self._holder}",
            **options,
        )

    def run(self, image: str, command: Any = None, *, detach: bool = False, **options: Any) -> "Container":
        """Create a container and start it, as older versions of Testcontainers do."""
        if not detach:
            raise UsageError("A container of a testbed runs in the background.", fix="detach=True")
        container = self.create(image, command, **options)
        container.start()
        return container

    def get_connection_mode(self) -> "ConnectionMode":
        """How others reach the container: by its own address, at its own ports."""
        from testcontainers.core.config import ConnectionMode

        return ConnectionMode.bridge_ip

    def bridge_ip(self, _container: str) -> str:
        """Its address, which this machine reaches too.

        Raises:
            Unsupported: it does not.
        """
        if not self._reachable:
            raise Unsupported(
                "The containers of a rootless engine cannot be reached from this machine.",
                fix="wait with ListeningWaitStrategy, or for a line with LogMessageWaitStrategy",
            )
        return self.node.ipv4


def join(container: "DockerContainer", client: PodClient) -> None:
    """Have a container made by another client than its own."""
    container._docker = client  # type: ignore[assignment]  # noqa: SLF001 - it does what the container asks of one


def leave(container: "DockerContainer") -> None:
    """Give a container its own client back; idempotent."""
    client: object = container._docker  # noqa: SLF001 - as in join
    if isinstance(client, PodClient):
        container._docker = client.inner  # noqa: SLF001 - as in join


def require_joinable(node: str, container: "DockerContainer") -> None:
    """See that a container can be made in a node's network, before anything is.

    Raises:
        UsageError: it runs already, or has what its node has.
    """
    if container._container is not None:  # noqa: SLF001 - get_wrapped_container raises instead of saying
        raise UsageError(f"The {node}'s container runs already.", fix="give it as it is before start()")
    if container._network is not None:  # noqa: SLF001 - there is no other way to know
        raise UsageError(
            f"The {node}'s container was given a network, and the testbed puts it into one of its own.",
            fix="leave with_network() out; with_network_aliases() may stay",
        )
    refuse_ports(node, container.ports)
    refuse(node, container._kwargs)  # noqa: SLF001 - there is no other way to know


def refuse(node: str, options: Mapping[str, Any]) -> None:
    """Raise where an option is for the network that a container joins.

    Raises:
        UsageError: one is, with what to do instead.
    """
    for name, fix in CONFLICTS.items():
        if options.get(name):
            raise UsageError(f"The {node}'s container was given {name}, which in a testbed its network has.", fix=fix)
    # An engine would set them in the network that is joined, in the middle of things.
    nets = sorted(key for key in options.get("sysctls") or {} if key.startswith("net."))
    if nets:
        wanted = {key: str(options["sysctls"][key]) for key in nets}
        raise UsageError(
            f"The {node}'s container was given the sysctl {nets[0]}, which its network has.",
            fix=f"Testbed(..., sysctls={{{node!r}: {wanted!r}}})",
        )


def refuse_ports(node: str, ports: Any) -> None:
    """Raise where a port of the host was wanted.

    Raises:
        UsageError: one was.
    """
    for port, on_host in ports.items():
        if on_host is not None:
            raise UsageError(
                f"The {node}'s container was to publish port {port} on the host; a testbed publishes nothing.",
                fix=f"with_exposed_ports({str(port).partition('/')[0]}), then get_container_host_ip() and "
                "get_exposed_port()",
            )


def aliases(containers: Mapping[str, "DockerContainer"]) -> dict[str, str]:
    """Node by each further name.

    Raises:
        UsageError: one is no name, or names something else already.
    """
    found: dict[str, str] = {}
    for node, container in containers.items():
        for alias in container._network_aliases or ():  # noqa: SLF001 - there is no other way to know
            if not _ALIAS.fullmatch(alias):
                raise UsageError(f"{alias!r} is no name for a host.", fix="letters, digits, dots and hyphens")
            if found.get(alias, node) != node or (alias in NODES and alias != node):
                raise UsageError(f"{alias!r} was to name the {node}, and names another node already.")
            found[alias] = node
    return found


def exposed_ports(container: "DockerContainer") -> tuple[int, ...]:
    """The TCP ports that the user said the container serves."""
    parts = [str(port).partition("/") for port in container.ports]
    return tuple(int(number) for number, _, protocol in parts if protocol in ("", "tcp"))
