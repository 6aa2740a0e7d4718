"""What processes that have ended left on the engine of this machine, and its removal.

The reaper leaves nothing; this is for what even it did not live to remove: it was killed together with its owner, the
engine was stopped meanwhile, or the machine.
"""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.core.errors import LabError
from lab.testbed.docker import refusals
from lab.testbed.docker.labels import is_gone, of_lab
from lab.testbed.docker.removal import Thing, find, remove
from lab.testbed.docker.wire import Api, Refused


def find_stale(api: Api) -> list[Thing]:
    """Everything of the lab on an engine of this machine whose owner is known to have ended.

    What has no owner is not listed: images' labels are inherited by containers that people start from them.

    Raises:
        LabError: the engine does not say.
    """
    try:
        return [thing for thing in find(api, of_lab()) if thing.owner is not None and is_gone(thing.owner)]
    except Refused as refused:
        raise refusals.explain(refused.message) from refused
    except (OSError, http.client.HTTPException) as error:
        raise refusals.lost(f"asked for its lists, it gave no answer ({error})") from error


def sweep(api: Api) -> list[Thing]:
    """Remove what ``find_stale`` finds; what was removed.

    Raises:
        LabError: the engine does not say what is there.
    """
    return remove(api, find_stale(api))


def local_engines(tell: Callable[[str], None] = lambda _: None) -> Iterator[Api]:
    """The engine of this machine, where there is one and this user may use it; else nothing.

    Args:
        tell: Hears why there is none, where one could be expected: DOCKER_HOST is set, or it has left its socket.
    """
    from lab.testbed.docker.engine import DEFAULT_ADDRESS, address, connect

    try:
        engine = connect()
    except LabError as error:
        if address() != DEFAULT_ADDRESS or Path(DEFAULT_ADDRESS.removeprefix("unix://")).exists():
            tell(f"Containers were not looked for. {error.message}")
        return
    with engine:
        # Elsewhere, other processes have the same ids.
        if engine.is_here:
            yield Api(engine.socket_path, ".".join(map(str, engine.api_version)))
