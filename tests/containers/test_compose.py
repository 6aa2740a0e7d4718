"""compose.yaml: accepted by the oldest Compose that the lab knows, and what it gives each container."""

import os
import re
import shutil
import subprocess

import pytest

import lab
from lab.testbed.docker.images.image import package_root
from tests.engines import do_without

COMPOSE = package_root().parent / "compose.yaml"

PROGRAMS = ("client", "server")
NODES = ("client-node", "server-node")


def compose(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the Compose that is here, with these of the lab's variables alone."""
    if shutil.which("docker-compose") is None:
        do_without("docker-compose is not installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    return subprocess.run(
        ["docker-compose", "-f", str(COMPOSE), *arguments],
        cwd="/",  # no .env of somebody's
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def config(**variables: str) -> str:
    """What Compose understands, with a token."""
    done = compose("config", LAB_TOKEN="secret", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def service(text: str, name: str) -> str:
    """The part of what Compose printed that is about one service."""
    services = text[text.index("\nservices:\n") :]
    match = re.search(rf"^  {name}:\n((?:    .*\n|\n)+)", services, re.MULTILINE)
    assert match is not None
    return match[1]


def test_it_is_understood_without_a_warning() -> None:
    done = compose("config", "--services", LAB_TOKEN="secret")

    assert done.stderr == ""
    assert sorted(done.stdout.split()) == sorted(["router", *PROGRAMS, *NODES])


def test_without_a_token_it_says_where_one_is_explained() -> None:
    done = compose("config")

    assert done.returncode != 0
    assert "LAB_TOKEN" in done.stderr
    assert "head of compose.yaml" in done.stderr


def test_only_the_control_port_is_published_and_on_loopback_only() -> None:
    text = config()

    assert re.findall(r"^    ports:\n(?:    - .*\n)+", text, re.MULTILINE) == [
        "    ports:\n    - 127.0.0.1:8474:8474/tcp\n"
    ]
    assert "privileged" not in text
    assert "network_mode: host" not in text
    assert "docker.sock" not in text


def test_both_networks_let_routed_packets_in_and_an_engine_that_knows_no_such_mode_gets_another() -> None:
    option = "com.docker.network.bridge.gateway_mode_ipv4: "

    assert config().count(f"{option}nat-unprotected") == 2
    assert config(LAB_GATEWAY_MODE="nat").count(f"{option}nat\n") == 2


def test_variables_move_networks_and_port() -> None:
    text = config(LAB_LEFT="10.1.2", LAB_RIGHT="10.3.4", LAB_PORT="9000")

    assert set(re.findall(r"\b\d+\.\d+\.\d+\.0/24", text)) == {"10.1.2.0/24", "10.3.4.0/24"}
    assert set(re.findall(r"\b(10\.\d+\.\d+)\.\d+\b", text)) == {"10.1.2", "10.3.4"}
    assert "127.0.0.1:9000:8474" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_no_capability_and_shares_its_node_s_network(name: str) -> None:
    text = service(config(), name)

    assert "cap_drop:\n    - ALL" in text
    assert "cap_add" not in text
    assert "no-new-privileges:true" in text
    assert f"network_mode: service:{name}-node" in text


@pytest.mark.parametrize("name", NODES)
def test_a_node_may_set_routes_and_no_more(name: str) -> None:
    assert "cap_add:\n    - NET_ADMIN\n    cap_drop:\n    - ALL" in service(config(), name)


def test_the_images_are_this_version_s() -> None:
    tags = set(re.findall(r"image: blackhole-lab/\S+:(\S+)", config()))

    assert tags == {lab.__version__}
    assert "image: mine:1" in service(config(LAB_IMAGE="mine:1"), "router")
