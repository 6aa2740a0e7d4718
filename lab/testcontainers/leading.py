"""Routes of a container that is not the lab's: set from beside it, in its network namespace."""

import contextlib
import ipaddress
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab.core.errors import EnvironmentNotReady, UsageError
from lab.testbed.docker.engine import engine_errors
from lab.testbed.docker.labels import labels

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

_TIMEOUT_S = 30.0
_POLL_S = 0.02
_SET = b" via "
"""In what ``lab.testbed.docker.inner.route`` says once the routes are set."""


def lead(
    container: "DockerContainer",
    router: "DockerContainer",
    names: tuple[str, str],
    subnets: tuple[Sequence[str], Sequence[str]],
) -> None:
    """Send what goes to the other side of a router through it.

    Args:
        container: Runs, on one of the two networks.
        router: Runs on both.
        names: Of the two networks.
        subnets: Of each.

    Raises:
        UsageError: the container does not run, or is on neither network or on both.
        EnvironmentNotReady: the routes cannot be set.
    """
    with engine_errors("looking at a container"):
        own, gateways = _attachments(container), _attachments(router)
    sides = [index for index, name in enumerate(names) if name in own]
    if len(sides) != 1:
        raise UsageError(
            f"A container is led that is on one of the router's networks; this one is on {', '.join(own) or 'none'}.",
            fix="container.with_network(left)",
        )
    (side,) = sides
    gateway = gateways[names[side]]
    for version, key in ((4, "IPAddress"), (6, "GlobalIPv6Address")):
        there = [one for one in subnets[1 - side] if ipaddress.ip_network(one).version == version]
        if there and gateway[key] and own[names[side]][key]:
            _set_routes(container, router, there, gateway[key])


def _attachments(container: "DockerContainer") -> dict[str, Any]:
    if container._container is None:  # noqa: SLF001 - get_wrapped_container raises another library's error
        raise UsageError("A container is led while it runs.", fix="start() it first")
    inner = container.get_wrapped_container()
    inner.reload()
    if inner.status != "running":
        raise UsageError(f"A container is led while it runs; this one is {inner.status}.", fix="look at its logs")
    found: dict[str, Any] = inner.attrs["NetworkSettings"]["Networks"]
    return found


def _set_routes(container: "DockerContainer", router: "DockerContainer", there: Sequence[str], gateway: str) -> None:
    """Have a container of the lab's set them; they stay when it is gone."""
    words = [word for one in there for word in ("--to", one)]
    with engine_errors("setting a container's routes"):
        side = router.get_docker_client().client.containers.create(
            router.image,
            command=["lab.testbed.docker.inner.route", *words, "--via", gateway],
            network_mode=f"container:{container.get_container_id()}",
            cap_drop=["ALL"],
            cap_add=["NET_ADMIN"],
            labels=labels("", "route"),
        )
        with contextlib.ExitStack() as end:
            end.callback(side.remove, force=True, v=True)
            side.start()
            _await_routes(side)


def _await_routes(side: Any) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while _SET not in (said := side.logs(stderr=False)):
        side.reload()
        if side.status not in ("created", "running") or time.monotonic() > deadline:
            words = side.logs(stdout=False).decode("utf-8", "replace").strip() or said.decode("utf-8", "replace")
            raise EnvironmentNotReady(f"A container's routes could not be set: {words or 'it took too long'}")
        time.sleep(_POLL_S)
