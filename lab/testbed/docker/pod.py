"""The containers that hold a testbed's nodes, and those of the user's images that join them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.inner.seat import FOLDER

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

CAPABILITIES = ("NET_ADMIN", "NET_RAW", "SYS_PTRACE", "SYS_NICE")
"""Of a holder: rules, routes and offloads; packet sockets; reading the options of its programs' sockets; its agent's
place in front of busy programs. No user's container gets one of them."""

_INSIDE = "lab.testbed.docker.inner.inside"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a holder is made with."""

    node: str
    image: str
    """The lab's own."""

    api: str
    """Version of the engine's API, as ``1.41``, so that nobody asks for it again."""

    networks: Mapping[str, str]
    """Name to families (46, 4 or 6); the first one at creation, the rest right after the start."""

    labels: Mapping[str, str]
    folder: Path
    """Shared with the caller."""

    sysctls: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    workplace: Path | None = None
    """The caller's folder that the node's programs may read, at the same place; None for none."""


def make_holder(holding: Holding) -> "DockerContainer":
    """The container that holds a node's network namespace, not started yet."""
    from docker.types import Mount
    from testcontainers.core.container import DockerContainer

    mounts = [Mount(FOLDER, str(holding.folder), "bind")]
    if holding.workplace is not None:
        place = str(holding.workplace)
        mounts.append(Mount(place, place, "bind", read_only=True))
    extra: dict[str, Any] = {
        "labels": dict(holding.labels),
        "cap_add": list(CAPABILITIES),
        "hostname": holding.node,
        "network": next(iter(holding.networks)),
        "sysctls": dict(holding.sysctls),
        "mounts": mounts,
    }
    container = DockerContainer(holding.image, {"version": holding.api}).with_kwargs(**extra)
    for name, value in holding.environment.items():
        container.with_env(name, value)
    return container.with_command([_INSIDE, holding.node, *holding.networks.values()])


def start_holder(container: "DockerContainer", more_networks: Iterable[Any]) -> None:
    """Start it, and attach it to the rest of its networks.

    Args:
        container: From ``make_holder``.
        more_networks: The engine's objects; asked for after the start, since they may still be in the making.

    Raises:
        LabError: the engine refuses; see ``engine_errors``.
    """
    with engine_errors("starting a node's container"):
        container.start()
        for network in more_networks:
            network.connect(container.get_container_id())


def engine_gateways(container: "DockerContainer", network: str) -> tuple[str, ...]:
    """The engine's own addresses on one of a container's networks, which lead outside; none on one that is closed."""
    with engine_errors("looking at a node's container"):
        inner = container.get_wrapped_container()
        inner.reload()
        joined = inner.attrs["NetworkSettings"]["Networks"][network]
    return tuple(address for address in (joined.get("Gateway"), joined.get("IPv6Gateway")) if address)


def why_ended(container: "DockerContainer") -> str | None:
    """The last words of a container that has ended, None while it runs."""
    with engine_errors("looking at a node's container"):
        inner = container.get_wrapped_container()
        inner.reload()
        if inner.status in ("created", "running"):
            return None
        said = _last_words(inner.logs(tail=8).decode("utf-8", "replace"))
    state = inner.attrs["State"]
    return (
        f"exit status {state['ExitCode']}{', out of memory' if state.get('OOMKilled') else ''}: {said or 'no output'}"
    )


def _last_words(said: str) -> str:
    """What it said; of a traceback the error alone."""
    lines = said.strip().splitlines()
    return lines[-1] if any(line.startswith('  File "') for line in lines) else "\n".join(lines)
