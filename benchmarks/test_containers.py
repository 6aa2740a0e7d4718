"""A container testbed up and down against a hand-written script that starts the same containers.

The script (``by_hand_docker.sh``) is what an engineer would type: networks, containers and nothing else. The lab's
beginning is over when every node has answered a call, and every program's side container too; its reaper, one for all
testbeds of a process, is counted with the first testbed.
"""

import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.figures import Figure, milliseconds, ratio
from lab.testbed.docker import DockerTestbed, Images, open_testbed, reaper
from lab.testbed.docker.engine import Engine, has_image
from lab.testbed.docker.image import demo_image
from lab.testcontainers import Router, routed_network
from tests.engines import do_without, require_engine, require_lab_image

BY_HAND = Path(__file__).with_name("by_hand_docker.sh")
ROUNDS = 10
FIRSTS = 3
GOAL = 1.3
"""How many times as long as the script the lab may take, up and down together."""

LISTENS = ("5000",)
"""What the users' image is told; its program stays until it is removed."""

Sides = list[tuple[float, float]]
"""Seconds up and down, per round."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """This machine's."""
    with require_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def lab_image(engine: Engine) -> str:
    """The one with the code that is here."""
    if shutil.which("docker") is None:
        do_without("the hand-written script needs the docker command, which is not installed")
    return require_lab_image(engine)


@pytest.fixture(scope="module")
def users_images(engine: Engine) -> Images:
    """A server for both ends, since it waits for nobody."""
    if not has_image(engine, demo_image("server")):
        do_without("There is no demo image; lab image build")
    return Images(demo_image("server"), demo_image("server"))


def test_up_and_down_against_docker_run(lab_image: str, tmp_path: Path, figures: Callable[[Figure], None]) -> None:
    """Three nodes on two networks."""
    firsts = [_first() for _ in range(FIRSTS)]
    ours, theirs = _in_turns(Images(), lab_image, tmp_path)
    _compare("containers, n-th testbed", ours, theirs, figures)
    both = list(map(sum, ours))
    figures(
        Figure(
            "containers, first testbed of a process, up (with the reaper's start)",
            milliseconds([up for up, _ in firsts]),
            f"n-th testbed, up: {milliseconds([up for up, _ in ours])}",
            f"{ratio([up for up, _ in firsts], [up for up, _ in ours]):.1f} times as long",
        )
    )
    assert ratio(both, list(map(sum, theirs))) <= GOAL


def test_up_and_down_with_users_images(
    lab_image: str, users_images: Images, tmp_path: Path, figures: Callable[[Figure], None]
) -> None:
    """The same with a program of the user's in both ends, and the lab's side container beside each."""
    ours, theirs = _in_turns(users_images, lab_image, tmp_path)
    _compare("containers with users' images, n-th testbed", ours, theirs, figures)


@pytest.mark.usefixtures("engine")
def test_the_router_with_its_controller_starts_soon(lab_image: str, figures: Callable[[Figure], None]) -> None:
    """From the call until the controller has answered and captures, against a container that sleeps."""
    ours, theirs = [], []
    with routed_network() as left, routed_network() as right:
        for _ in range(FIRSTS + 2):
            router = Router(left, right)
            began = time.monotonic()
            router.start()
            ours.append(time.monotonic() - began)
            router.stop()
            theirs.append(_plain_router(lab_image, left.name, right.name))
    figures(
        Figure(
            "router container with the controller, until it answers and captures",
            milliseconds(ours),
            f"`docker run` and `docker network connect` of one that sleeps: {milliseconds(theirs)}",
            f"{ratio(ours, theirs):.1f} times as long",
        )
    )


def _in_turns(images: Images, lab_image: str, folder: Path) -> tuple[Sides, Sides]:
    """The lab's and the script's times, taken in turns."""
    _ours(images)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_ours(images))
        theirs.append(_theirs(images, lab_image, folder))
    return ours, theirs


def _compare(what: str, ours: Sides, theirs: Sides, figures: Callable[[Figure], None]) -> None:
    parts: dict[str, Callable[[tuple[float, float]], float]] = {
        "up and down": sum,
        "up alone": lambda pair: pair[0],
        "down alone": lambda pair: pair[1],
    }
    for part, of in parts.items():
        lab, script = list(map(of, ours)), list(map(of, theirs))
        longer = ratio(lab, script)
        goal = f"at most {GOAL} times" if part == "up and down" else ""
        figures(
            Figure(
                f"{what}, {part}",
                milliseconds(lab),
                f"`docker run` script: {milliseconds(script)}",
                f"{longer:.2f} times as long",
                goal,
                longer <= GOAL if goal else None,
            )
        )


def _first() -> tuple[float, float]:
    reaper.shut_down()
    return _ours(Images())


def _ours(images: Images) -> tuple[float, float]:
    began = time.monotonic()
    testbed = open_testbed(images=images)
    _until_all_answer(testbed, images)
    up = time.monotonic()
    testbed.close()
    return up - began, time.monotonic() - up


def _until_all_answer(testbed: DockerTestbed, images: Images) -> None:
    ends = [testbed.server, testbed.client]
    if images.client:
        for node in ends:
            node.spawn(LISTENS)
    for node in (*ends, testbed.router):
        node.read_sysctl("net.ipv4.ip_forward")
    for node in ends if images.client else ():
        # Nobody has such a socket; who would look for it has to be there to say so.
        assert node.socket_options(1, 1) is None


def _theirs(images: Images, lab_image: str, folder: Path) -> tuple[float, float]:
    name = f"lab-by-hand-{secrets.token_hex(3)}"
    programs = [images.client, images.server] if images.client and images.server else []

    def run(verb: str) -> float:
        began = time.monotonic()
        subprocess.run(["sh", str(BY_HAND), verb, name, lab_image, str(folder), *programs], check=True)
        return time.monotonic() - began

    try:
        up = run("up")
    finally:
        down = run("down")
    return up, down


def _plain_router(lab_image: str, left: str, right: str) -> float:
    name = f"lab-by-hand-{secrets.token_hex(3)}"
    command = ["docker", "run", "-d", "--name", name, "--network", left, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN"]
    command += ["--cap-add", "NET_RAW", "--publish", "127.0.0.1::8474", "--entrypoint", "sleep", lab_image, "infinity"]
    began = time.monotonic()
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["docker", "network", "connect", right, name], check=True)
        return time.monotonic() - began
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=False, stdout=subprocess.DEVNULL)
