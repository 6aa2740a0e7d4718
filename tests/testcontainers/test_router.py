"""The router alone, between two networks of the user's."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import HttpWaitStrategy

from lab.core.errors import EnvironmentNotReady, InvalidRun, UsageError
from lab.core.flow import Endpoint, FourTuple
from lab.testbed.docker.engine import Engine
from lab.testcontainers import Router, routed_network
from lab.testcontainers.http import ControlOverHttp
from tests.engines import do_without
from tests.testbed.docker.owners import owner, until, wait_until_nothing_is_left
from tests.testcontainers.containers import PORT, client, left, output, server

SCRIPT = Path(__file__).parents[2] / "repro" / "node" / "cut.mjs"
NOBODYS = FourTuple(Endpoint("192.0.2.1", 1), Endpoint("192.0.2.2", 2))
OWNER = """
from lab.testcontainers import Router, routed_network
with routed_network() as left, routed_network() as right, Router(left, right) as router:
    print("up", flush=True)
    input()
"""


@dataclass
class Place:
    """A client and a server of the user's, in networks of the user's."""

    router: Router
    client: DockerContainer
    server: DockerContainer
    networks: tuple[Network, Network]


@pytest.fixture(scope="module")
def place(app: str) -> Iterator[Place]:
    with (
        routed_network() as left,
        routed_network() as right,
        Router(left, right, heartbeat_s=30) as router,
        server(app, cap_drop=["ALL"]).with_network(right) as target,
    ):
        router.lead(target)
        caller = client(app, host=address_of(target, right), cap_drop=["ALL"]).with_network(left)
        with caller as source:
            router.lead(source)
            until(lambda: "answer" in output(source))
            yield Place(router, source, target, (left, right))


def address_of(container: DockerContainer, network: Network) -> str:
    inner = container.get_wrapped_container()
    inner.reload()
    return str(inner.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"])


def test_a_flow_is_cut_over_http_and_a_new_one_passes(place: Place) -> None:
    with place.router.cut(port=PORT) as cut:
        cut.wait_until_lost()
        assert place.router.flow(PORT) != cut.flow
        said = output(place.client)
        until(lambda: output(place.client).count("answer") > said.count("answer"))
        verdict = place.router.verdict(cut)

    assert verdict.confirmed, verdict.reason
    assert verdict.forward.matched >= 1
    assert not verdict.final
    assert cut.state.healed_by == "request"
    assert place.router.verdict(cut.id).final
    assert place.router.captures("left").startswith(b"\x0a\x0d\x0d\x0a")
    assert place.router.heal() == []


def test_the_api_is_on_loopback_alone_and_asks_for_the_token(place: Place) -> None:
    published = place.router.get_wrapped_container().attrs["HostConfig"]["PortBindings"]

    assert [one["HostIp"] for ports in published.values() for one in ports] == ["127.0.0.1"]
    assert requests.get(f"{place.router.url}/healthz", timeout=5).json()["heartbeat"] == "alive"
    assert requests.get(f"{place.router.url}/flows", timeout=5).status_code == 401
    with pytest.raises(EnvironmentNotReady, match="token was expected"):
        ControlOverHttp(place.router.url, "another").flows()


def test_the_router_holds_two_capabilities_and_the_led_containers_none(place: Place) -> None:
    def held(container: DockerContainer, python: str) -> str:
        code = "print(*[line.split()[1] for line in open('/proc/1/status') if line.startswith('CapBnd')])"
        return container.exec([python, "-c", code]).output.decode().strip()

    # NET_ADMIN and NET_RAW are numbers 12 and 13: linux/capability.h.
    assert held(place.router, "/opt/lab/bin/python") == f"{1 << 12 | 1 << 13:016x}"
    assert held(place.client, "python3") == held(place.server, "python3") == "0" * 16


def test_what_the_controller_refuses_is_a_usage_error(place: Place) -> None:
    router = place.router
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: router.flow(1, timeout_s=0.1), "no established flow to port 1"),
        (lambda: router.cut(NOBODYS), "No open flow"),
        (lambda: router.cut(NOBODYS._replace(client=Endpoint("192.0.2.1", 0))), "expected"),
        (lambda: router.cut(NOBODYS, port=PORT), "both given"),
        (lambda: router.cut(port=PORT, scope="world"), "flow, host"),
        (lambda: router.verdict("none"), "No fault has the id"),
    ]
    for call, words in wrong:
        with pytest.raises(UsageError, match=words):
            call()


def test_a_node_script_drives_it(place: Place) -> None:
    node = shutil.which("node") or do_without("There is no node; apt-get install nodejs")
    done = subprocess.run(
        [node, str(SCRIPT), place.router.url, str(PORT)],
        env={**os.environ, "LAB_TOKEN": place.router.token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "verdict  confirmed"


def test_only_a_container_on_one_of_its_networks_is_led(place: Place, app: str) -> None:
    with DockerContainer(app) as stranger, pytest.raises(UsageError, match="this one is on bridge"):
        place.router.lead(stranger)
    with pytest.raises(UsageError, match="while it runs"):
        place.router.lead(server(app))


def test_a_silent_owner_heals_what_is_cut() -> None:
    with routed_network() as left, routed_network() as right, Router(left, right, heartbeat_s=1) as router:
        control = ControlOverHttp(router.url, router.token)
        requests.post(
            f"{router.url}/faults",
            json={"flow": {"client": "192.0.2.1:1", "server": "192.0.2.2:2"}, "must_exist": False},
            headers={"Authorization": f"Bearer {router.token}"},
            timeout=5,
        )
        (fault,) = requests.get(
            f"{router.url}/faults", headers={"Authorization": f"Bearer {router.token}"}, timeout=5
        ).json()["faults"]
        time.sleep(2)  # Twice as long as it may be silent, and it is not.
        assert control.fault(fault["id"]).in_force
        router._ends.close()

        until(lambda: control.fault(fault["id"]).healed_by == "heartbeat", 10)
        control.close()


def test_a_killed_owner_leaves_no_router_and_no_network_of_it(engine: Engine) -> None:
    with owner("-c", OWNER) as victim:
        assert victim.hear() == "up"
        victim.kill()
        wait_until_nothing_is_left(engine, victim.owner)


def test_it_waits_by_the_users_strategy_too_and_leaves_nothing(engine: Engine) -> None:
    before = left(engine)
    with Network() as one, Network() as other:
        router = Router(one, other).waiting_for(HttpWaitStrategy(8474, "/healthz").with_poll_interval(0.1))
        with router.with_kwargs(mem_limit="256m", labels={"mine": "1"}):
            attributes = router.get_wrapped_container().attrs
            assert attributes["HostConfig"]["Memory"] == 256 << 20
            assert attributes["HostConfig"]["CapDrop"] == ["ALL"]
            assert attributes["Config"]["Labels"]["mine"] == "1"
        router.stop()
        with pytest.raises(UsageError, match="not up"):
            router.flows()

    assert left(engine) == before


@pytest.mark.parametrize(
    ("kind", "words"), [("internal", "internal network"), ("absent", "not created"), ("same", "two networks")]
)
def test_networks_that_cannot_do_are_refused(engine: Engine, kind: str, words: str) -> None:
    before = left(engine)
    with routed_network() as one, routed_network(internal=True) as closed:
        other = {"internal": closed, "absent": Network(), "same": one}[kind]
        with pytest.raises(UsageError, match=words):
            Router(one, other).start()

    assert left(engine) == before


def test_a_router_that_died_says_so(engine: Engine) -> None:
    before = left(engine)
    with Network() as one, Network() as other, Router(one, other) as router:
        router.get_wrapped_container().kill()
        with pytest.raises(InvalidRun, match="does not answer GET /flows"):
            router.flows()

    assert left(engine) == before


def test_the_image_of_the_lab_is_named_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_IMAGE", "lab-test-nosuch:1")
    with Network() as one, Network() as other:
        router = Router(one, other)
        with pytest.raises(EnvironmentNotReady, match=re.escape("lab image build")):
            router.start()


def test_importing_the_package_costs_no_web_framework() -> None:
    code = "import sys, lab.testcontainers; print({'fastapi', 'scapy', 'pydantic'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "none"
