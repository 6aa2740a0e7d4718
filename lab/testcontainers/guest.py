"""One container of the user's in a testbed, from its start to its end."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import InvalidRun, LabError, UsageError
from lab.testbed.docker.engine import engine_errors
from lab.testbed.names import SERVER
from lab.testcontainers.joining import PodClient, exposed_ports, join, leave
from lab.testcontainers.waiting import ListeningWaitStrategy, tail

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer


def start(container: "DockerContainer", client: PodClient) -> None:
    """Start it in its node's network; a server is waited for by its own wait strategy, else until it listens.

    Raises:
        UsageError: it ended, or did not become ready.
    """
    node = client.node.name
    join(container, client)
    try:
        container.start()
    except (RuntimeError, TimeoutError) as error:
        # Its own wait strategy gave up.
        raise UsageError(f"The {node}'s container did not become ready: {error} {tail(container)}") from error
    if node == SERVER and container._wait_strategy is None:  # noqa: SLF001 - there is no other way to know
        ListeningWaitStrategy(*exposed_ports(container)).wait_until_ready(container)


def end(container: "DockerContainer") -> None:
    """Remove it, and make it one that can be started again; idempotent."""
    try:
        # It may have been removed by the test.
        with contextlib.suppress(InvalidRun), engine_errors("removing a container"):
            container.stop()
    finally:
        container._container = None  # noqa: SLF001 - stop() leaves what is gone in place
        leave(container)


def keep_output(container: "DockerContainer", path: Path) -> None:
    """Write what it printed to a file, as far as the engine has it."""
    if container._container is None:  # noqa: SLF001 - not an error here
        return
    # What the engine cannot give any more must not keep the rest from being removed.
    with contextlib.suppress(LabError), engine_errors("reading a container's output"):
        path.write_bytes(container.get_wrapped_container().logs())
