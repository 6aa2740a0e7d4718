"""Sets of containers, networks and volumes, labelled as a testbed's are, made and removed as a testbed makes them.

``python -m tests.testbed.docker.sets IMAGE`` brings such sets up and takes them down until it is killed.
"""

import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from docker.types import Mount

from lab.testbed.docker import labels
from lab.testbed.docker.cleanup import reaper
from lab.testbed.docker.cleanup.removal import Thing, find, remove
from lab.testbed.docker.engine import Engine, connect
from lab.testbed.docker.wire import Api

SLEEP = ["python3", "-c", "import time; time.sleep(600)"]
NODES = ("client", "router", "server")


def wire(engine: Engine) -> Api:
    return Api(engine.socket_path, ".".join(map(str, engine.api_version)))


def things_of(engine: Engine, owner: labels.Owner) -> list[Thing]:
    return find(wire(engine), labels.of_owner(owner))


@contextmanager
def container_set(engine: Engine, image: str) -> Iterator[str]:
    """Three containers on two networks, two that share a namespace with them, a volume; the name of their testbed."""
    testbed = secrets.token_hex(6)
    try:
        bring_up(engine, image, testbed)
        yield testbed
    finally:
        while left := find(wire(engine), labels.of_testbed(testbed)):
            remove(wire(engine), left)


def bring_up(engine: Engine, image: str, testbed: str) -> None:
    api = engine.client.api
    volume = f"lab-test-{testbed}"
    api.create_volume(volume, labels=labels.labels(testbed, "volume"))
    networks = [f"lab-test-{testbed}-{side}" for side in ("left", "right")]
    with ThreadPoolExecutor(3) as workers:
        list(workers.map(lambda name: api.create_network(name, labels=labels.labels(testbed, "network")), networks))

        def start(role: str, mode: str) -> str:
            marks = labels.labels(testbed, role)
            # Labelled here too: a request that is under way at the owner's end may make the volume anew.
            mount = Mount("/data", volume, labels=labels.labels(testbed, "volume"))
            config = api.create_host_config(network_mode=mode, mounts=[mount])
            made = api.create_container(image, SLEEP, entrypoint=[], labels=marks, host_config=config)
            api.start(made)
            return str(made["Id"])

        holders = list(workers.map(start, NODES, (networks[0], networks[0], networks[1])))
        list(workers.map(lambda holder: start("program", f"container:{holder}"), holders[::2]))


def tell(news: str) -> None:
    sys.stdout.write(f"{news}\n")
    sys.stdout.flush()


def main() -> None:
    image = sys.argv[1]
    tell("begun")
    with connect() as engine:
        while True:
            with reaper.watch(engine, image) as watch, container_set(engine, image):
                watch.wait()
                tell("up")
                time.sleep(0.2)
            tell("down")


if __name__ == "__main__":
    main()
