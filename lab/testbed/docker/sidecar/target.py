"""Which running container an attachment is to join, and whether it can be."""

from typing import TYPE_CHECKING

from lab.core.errors import LabError, Unsupported, UsageError
from lab.testbed.docker.engine import Engine, engine_errors
from lab.testbed.docker.labels import LAB, ROLE
from lab.testbed.docker.sidecar import parting

if TYPE_CHECKING:
    from docker.models.containers import Container


def find_target(engine: Engine, name: str) -> "Container":
    """The container that is meant, fit to be joined.

    Raises:
        UsageError: no such container, it does not run, or the lab is attached to it already.
        Unsupported: it has the host's network.
    """
    from docker.errors import NotFound

    with engine_errors("looking for the container"):
        try:
            found: Container = engine.client.containers.get(name)
        except NotFound:
            raise _no_such(engine, name) from None
        others = engine.client.containers.list(
            all=True,
            ignore_removed=True,
            filters={"label": [f"{LAB}=1", f"{ROLE}={parting.ATTACH}", f"{parting.TARGET}={found.id}"]},
        )
    if found.status != "running":
        raise UsageError(f"A running container was expected; {name} is {found.status}.", fix=f"docker start {name}")
    if str(found.attrs["HostConfig"]["NetworkMode"]) == "host":
        raise Unsupported(f"{name} has the host's own network, which the lab never touches.", fix="give it a network")
    if others:
        raise _taken(name, others[0])
    return found


def _no_such(engine: Engine, name: str) -> UsageError:
    # Neither the lab's sidecars and reapers nor its testbeds are what anybody means here.
    running = engine.client.containers.list(ignore_removed=True)
    names = sorted(str(one.name) for one in running if LAB not in one.labels)
    return UsageError(f"There is no container {name}; running are: {', '.join(names) or 'none'}.", fix="docker ps")


def _taken(name: str, other: "Container") -> LabError:
    if other.status == "running":
        return UsageError(f"The lab is attached to {name} already.", fix="end the other lab attach first")
    return UsageError(f"A killed lab attach may have left rules in {name}.", fix="lab clean")
