"""The user's containers of these tests, and what is left of the lab on an engine.

``python -m tests.testcontainers.containers IMAGE`` has a testbed with them until it is killed.
"""

import sys
import time
from typing import Any

from testcontainers.core.container import DockerContainer

from lab.testbed.docker import labels
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import REAPER, ROLE
from lab.testcontainers import Testbed
from tests.testbed.docker.sets import things_of

PORT = 8080
QUICK = {"net.ipv4.tcp_retries2": "2"}
"""A kernel that gives up in a few seconds."""


def server(app: str, **options: Any) -> DockerContainer:
    return DockerContainer(app).with_command(["/app/server.py", str(PORT)]).with_kwargs(**options)


def client(app: str, *, host: str = "server", patience_s: float = 1, **options: Any) -> DockerContainer:
    """One that waits for an answer for so long; 0 waits for as long as its kernel does."""
    container = DockerContainer(app).with_command(["/app/client.py"]).with_kwargs(**options)
    return container.with_envs(SERVER=f"{host}:{PORT}", PATIENCE=str(patience_s))


def output(container: DockerContainer) -> str:
    return container.get_logs()[0].decode()


def left(engine: Engine) -> list[str]:
    """What this process has on an engine, its reaper aside."""
    return sorted(thing.name for thing in things_of(engine, labels.own()) if thing.labels.get(ROLE) != REAPER)


if __name__ == "__main__":
    with Testbed(client(sys.argv[1]), server(sys.argv[1])) as testbed:
        testbed.cut(port=PORT)
        sys.stdout.write("up\n")
        sys.stdout.flush()
        time.sleep(600)
