"""compose.yaml at work: a flow through the router, cut and healed by HTTP, and nothing left afterwards."""

import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lab.testbed.docker.engine import Engine
from tests.containers.test_compose import compose

TIMEOUT_S = 60.0
TOKEN = "of-a-test"


@dataclass(frozen=True)
class Project:
    """What is up."""

    name: str
    port: int
    engine: Engine

    def ask(self, method: str, path: str, body: Any = None, *, token: str | None = TOKEN) -> tuple[int, Any]:
        """Status and answer of a request to the control API."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, None

    def containers(self) -> dict[str, Any]:
        """By service."""
        label = f"com.docker.compose.project={self.name}"
        found = self.engine.client.containers.list(all=True, filters={"label": label})
        return {one.labels["com.docker.compose.service"]: one for one in found}

    def received(self) -> int:
        """Octets that came back to the client so far."""
        lines = [json.loads(line) for line in self.containers()["client"].logs().splitlines()]
        return sum(line["bytes"] for line in lines if line["event"] == "received")


@pytest.fixture(scope="module")
def project(engine: Engine, images: dict[str, str]) -> Iterator[Project]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    name = f"lab-test-{secrets.token_hex(4)}"
    variables = {
        "LAB_TOKEN": TOKEN,
        "LAB_PORT": str(port),
        "LAB_LEFT": "10.184.76",
        "LAB_RIGHT": "10.184.77",
        "LAB_IMAGE": images["lab"],
    }
    try:
        up = compose("-p", name, "up", "-d", "--no-build", **variables)
        assert up.returncode == 0, up.stderr
        yield Project(name, port, engine)
    finally:
        down = compose("-p", name, "down", "-t", "10", **variables)
    label = {"label": f"com.docker.compose.project={name}"}
    assert down.returncode == 0, down.stderr
    assert engine.client.containers.list(all=True, filters=label) == []
    assert engine.client.networks.list(filters=label) == []


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {TIMEOUT_S:g} s for {what}"
        time.sleep(0.1)


def test_health_is_open_and_the_rest_asks_for_the_token(project: Project) -> None:
    assert project.ask("GET", "/healthz", token=None)[0] == 200
    assert project.ask("GET", "/flows", token=None)[0] == 401
    assert project.ask("GET", "/flows", token="another")[0] == 401
    assert project.ask("GET", "/flows")[0] == 200


def test_a_flow_goes_dark_and_comes_back(project: Project) -> None:
    eventually(lambda: project.received() > 0, "the first answer to the client")

    status, fault = project.ask("POST", "/faults", {"select": {"server_port": 5000}})
    assert status in (200, 201)
    # The server only answers, so nothing of it need be under way.
    eventually(lambda: project.ask("GET", f"/faults/{fault['id']}")[1]["matched"]["forward"] > 1, "lost copies")
    dark = project.received()
    time.sleep(1.0)  # Four lines of the client would have come back in the light.
    assert project.received() == dark

    status, _ = project.ask("DELETE", f"/faults/{fault['id']}")
    assert status in (200, 204)
    eventually(lambda: project.received() > dark, "an answer after the heal")


def test_the_programs_hold_no_capability_and_the_nodes_one(project: Project) -> None:
    held = {}
    for service, container in project.containers().items():
        _, status = container.exec_run(["cat", "/proc/1/status"])
        held[service] = next(line.split()[1] for line in status.decode().splitlines() if line.startswith("CapEff"))

    assert held["client"] == held["server"] == "0000000000000000"
    # CAP_NET_ADMIN is number 12: linux/capability.h.
    assert held["client-node"] == held["server-node"] == f"{1 << 12:016x}"
