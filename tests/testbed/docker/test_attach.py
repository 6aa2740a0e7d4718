"""lab attach on containers that really run: the flow goes dark, comes back, and nothing of the lab remains."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker.types import IPAMConfig, IPAMPool

import lab
from lab.testbed.docker.cleanup.removal import remove
from lab.testbed.docker.cleanup.sweep import find_stale
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import LAB, ROLE
from lab.testbed.docker.sidecar import parting
from lab.testbed.docker.wire import Api

PORT = 5000
AF_INET6 = 10
LONGEST_S = 60.0
RESTORED_S = 15.0
"""From a SIGKILL to nothing left, at most; more for a machine that is busy with other tests."""

STATE = """
import json, os, socket
from pathlib import Path
from pyroute2 import IPRoute
from lab.testbed.firewall_nftables import _Nft

with IPRoute() as ip:
    found = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        found[f"rules {int(family)}"] = [str(sorted(map(str, one["attrs"]))) for one in ip.get_rules(family=family)]
        routes = ip.get_routes(family=family)
        found[f"routes {int(family)}"] = sorted(
            str([(key, value) for key, value in one["attrs"] if key != "RTA_CACHEINFO"]) for one in routes
        )
    found["links"] = sorted(name for _, name in socket.if_nameindex())
    found["addresses"] = sorted(str(one.get_attr("IFA_ADDRESS")) for one in ip.get_addr())
found["tables"] = [one["table"]["name"] for one in _Nft().run("list tables") if "table" in one]
found["settings"] = {
    str(path): path.read_text() for path in sorted(Path("/proc/sys/net/ipv6/conf").glob("*/disable_ipv6"))
}
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A client and a server of the user's, which talk."""

    engine: Engine
    image: str
    client: Any
    server: Any

    def state(self, container: Any = None) -> dict[str, Any]:
        """All that an attachment could change in a container's network."""
        said = self.engine.client.containers.run(
            self.image,
            ["-c", STATE],
            entrypoint=["/opt/lab/bin/python"],
            network_mode=f"container:{(container or self.client).id}",
            cap_add=["NET_ADMIN"],
            remove=True,
        )
        found: dict[str, Any] = json.loads(said)
        return found

    def events(self) -> list[dict[str, Any]]:
        """What the client said."""
        lines = self.client.logs(stderr=False).decode().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def received(self) -> int:
        """Octets that the client has had."""
        return max((event["total"] for event in self.events() if event["event"] == "received"), default=0)


@contextlib.contextmanager
def talking_pair(engine: Engine, image: str, *, ipv6: bool = False, **client: Any) -> Iterator[Pair]:
    name = f"attach-test-{uuid4().hex[:8]}"
    containers = engine.client.containers
    network = _make_network(engine, name, ipv6=ipv6)
    made = []
    try:
        server = containers.run(
            image, ["lab.programs.server", str(PORT)], name=f"{name}-server", network=name, detach=True
        )
        made.append(server)
        # By its address: a name may lead to another family.
        server.reload()
        address = server.attrs["NetworkSettings"]["Networks"][name]["GlobalIPv6Address" if ipv6 else "IPAddress"]
        words = ["lab.programs.client", address, str(PORT)]
        talker = containers.run(image, words, name=f"{name}-client", network=name, detach=True, **client)
        made.append(talker)
        pair = Pair(engine, image, talker, server)
        until(lambda: pair.received() > 0)
        yield pair
    finally:
        for container in made:
            container.remove(force=True, v=True)
        network.remove()


def _make_network(engine: Engine, name: str, *, ipv6: bool) -> Any:
    if not ipv6:
        return engine.client.networks.create(name)
    words = secrets.token_hex(5)
    pool = IPAMPool(subnet=f"fd{words[:2]}:{words[2:6]}:{words[6:]}::/64")
    return engine.client.networks.create(name, enable_ipv6=True, ipam=IPAMConfig(pool_configs=[pool]))


@pytest.fixture
def pair(engine: Engine, lab_image: str) -> Iterator[Pair]:
    with talking_pair(engine, lab_image) as made:
        yield made


@contextlib.contextmanager
def lab_attach(container: Any, out: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    path = os.pathsep.join(filter(None, (str(Path(lab.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "attach", "--container", container.name, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run_attach(container: Any, out: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, the object, and what was said."""
    with lab_attach(container, out, "--json", *options) as process:
        said, told = process.communicate(timeout=LONGEST_S)
        return process.returncode, json.loads(said) if said else {}, " ".join(told.split())


def wait_for_cut(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    while "CUT" not in (line := process.stderr.readline()):
        assert line, "it ended before its cut"


def until(condition: Callable[[], object], timeout_s: float = LONGEST_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def sidecars(engine: Engine, pair: Pair) -> list[Any]:
    """The lab's containers that have joined one of the pair's."""
    found = engine.client.containers.list(all=True, ignore_removed=True, filters={"label": f"{ROLE}={parting.ATTACH}"})
    ours = {pair.client.id, pair.server.id}
    return [one for one in found if one.labels[parting.TARGET] in ours]


@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_a_flow_goes_dark_and_comes_back_and_nothing_remains(
    engine: Engine, pair: Pair, tmp_path: Path, firewall: str
) -> None:
    before = pair.state()

    status, told, said = run_attach(pair.client, tmp_path, "--heal-after", "1", "--firewall", firewall)

    assert (status, told.get("proved"), told.get("restored_by")) == (0, True, "itself"), said
    assert (told["end"], told["placement"], told["interface"]) == ("client", "client-sink", "eth0")
    assert told["firewall"] == firewall
    assert told["copies"] >= 2
    assert "retransmit" in told["timers"]
    assert "probe" not in told["timers"]
    assert told["recovered_s"] > 1
    assert {"attach.json", "interface.pcapng", "sink.pcapng"} <= set(told["artefacts"])
    assert pair.state() == before
    assert sidecars(engine, pair) == []
    had = pair.received()
    until(lambda: pair.received() > had)
    assert sum(event["event"] == "connected" for event in pair.events()) == 1, "the same connection goes on"


@pytest.mark.slow
def test_an_ipv6_flow_goes_dark_although_the_engine_gives_new_devices_none(
    engine: Engine, lab_image: str, tmp_path: Path
) -> None:
    with talking_pair(engine, lab_image, ipv6=True) as pair:
        # Link-local addresses are tentative for a second or two.
        until(lambda: any("255), ('RTA_DST', 'fe80" in route for route in pair.state()[f"routes {AF_INET6}"]))
        before = pair.state()

        status, told, said = run_attach(pair.client, tmp_path, "--heal-after", "1")

        assert (status, told.get("proved")) == (0, True), said
        assert told["flow"]["client"].startswith("[fd")
        assert told["copies"] >= 2
        assert pair.state() == before


def test_the_servers_end_is_cut_in_the_servers_container(pair: Pair, tmp_path: Path) -> None:
    status, told, said = run_attach(pair.server, tmp_path, "--heal-after", "1", "--port", str(PORT))

    assert (status, told.get("proved")) == (0, True), said
    assert (told["end"], told["placement"]) == ("server", "server-sink")
    assert told["flow"]["server"].endswith(f":{PORT}")
    assert told["matched"]["forward"] >= 2, "the client's copies come, and are dropped"


def test_a_socket_that_gives_up_in_the_hole_is_seen(engine: Engine, lab_image: str, tmp_path: Path) -> None:
    bare: dict[str, Any] = {"user": "1000", "cap_drop": ["ALL"], "read_only": True}
    with talking_pair(engine, lab_image, sysctls={"net.ipv4.tcp_retries2": "3"}, **bare) as pair:
        status, told, said = run_attach(pair.client, tmp_path)

        assert (status, told.get("ended"), told.get("proved")) == (0, "gone", True), said
        assert 3 < told["gone_s"] < 15
        assert any(event.get("errno") == "ETIMEDOUT" for event in pair.events())


def test_ctrl_c_heals(pair: Pair, tmp_path: Path) -> None:
    before = pair.state()
    with lab_attach(pair.client, tmp_path, "--json") as process:
        wait_for_cut(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LONGEST_S)

        assert process.returncode == 130
        assert json.loads(said)["ended"] == "interrupted"
    assert pair.state() == before


@pytest.mark.slow
def test_a_second_attachment_is_refused_and_harms_the_first_one_not(pair: Pair, tmp_path: Path) -> None:
    with lab_attach(pair.client, tmp_path / "first", "--json", "--for", "12") as process:
        wait_for_cut(process)

        status, _, said = run_attach(pair.client, tmp_path / "second")

        assert (status, "attached to" in said, "already" in said) == (2, True, True), said
        told, _ = process.communicate(timeout=LONGEST_S)
        assert (process.returncode, json.loads(told)["proved"]) == (0, True)


def test_a_killed_attachment_is_healed_and_leaves_nothing(engine: Engine, pair: Pair, tmp_path: Path) -> None:
    before = pair.state()
    with lab_attach(pair.client, tmp_path) as process:
        wait_for_cut(process)
        process.kill()
        process.wait()

        until(lambda: not sidecars(engine, pair), 2 * RESTORED_S)
    assert pair.state() == before


@pytest.mark.slow
def test_a_killed_sidecar_makes_it_invalid_and_another_container_restores(
    engine: Engine, pair: Pair, tmp_path: Path
) -> None:
    before = pair.state()
    with lab_attach(pair.client, tmp_path) as process:
        wait_for_cut(process)
        sidecars(engine, pair)[0].kill()

        _, said = process.communicate(timeout=LONGEST_S)

        assert process.returncode == 3, said
    assert (tmp_path / "interface.pcapng").exists()
    assert sidecars(engine, pair) == []
    assert pair.state() == before


def test_of_a_kill_of_both_the_reaper_restores(engine: Engine, pair: Pair, tmp_path: Path) -> None:
    before = pair.state()
    with lab_attach(pair.client, tmp_path) as process:
        wait_for_cut(process)
        # It shall not restore by itself before it dies.
        process.send_signal(signal.SIGSTOP)
        sidecars(engine, pair)[0].kill()
        process.kill()
        process.wait()

        until(lambda: not sidecars(engine, pair), 2 * RESTORED_S)
    assert pair.state() == before


def test_what_a_kill_of_everything_leaves_lab_clean_restores(engine: Engine, pair: Pair, tmp_path: Path) -> None:
    """The command, its container and the reaper, all by SIGKILL and at once."""
    before = pair.state()
    with lab_attach(pair.client, tmp_path / "first") as process:
        wait_for_cut(process)
        sidecar = sidecars(engine, pair)[0]
        owner = sidecar.labels[f"{LAB}.owner"]
        mine = engine.client.containers.list(filters={"label": f"{LAB}.owner={owner}"})
        process.send_signal(signal.SIGSTOP)
        for container in mine:
            container.kill()
        process.kill()
        process.wait()
    left = pair.state()
    assert left != before
    assert "lab-sink" in left["links"]

    status, _, said = run_attach(pair.client, tmp_path / "second")
    assert (status, "lab clean" in said) == (2, True), said
    # As lab clean does, but with nobody else's things.
    api = Api(engine.socket_path, ".".join(map(str, engine.api_version)))
    stale = [thing for thing in find_stale(api) if thing.labels.get(parting.TARGET) == pair.client.id]
    assert [thing.name for thing in remove(api, stale)] == [sidecar.name]

    assert pair.state() == before
    assert sidecars(engine, pair) == []
    had = pair.received()
    until(lambda: pair.received() > had)


def test_a_container_that_ends_meanwhile_is_said(engine: Engine, pair: Pair, tmp_path: Path) -> None:
    with lab_attach(pair.client, tmp_path, "--for", "60") as process:
        wait_for_cut(process)
        pair.client.kill()

        _, told = process.communicate(timeout=LONGEST_S)

    assert (process.returncode, "ended while its flow was cut off" in " ".join(told.split())) == (3, True), told
    assert (tmp_path / "sink.pcapng").exists()
    assert sidecars(engine, pair) == []


def test_flows_that_cannot_be_told_apart_are_listed(engine: Engine, pair: Pair, tmp_path: Path) -> None:
    status, _, said = run_attach(pair.client, tmp_path, "--port", "81")
    assert (status, "no established TCP flow with port 81" in said) == (2, True), said
    assert not list(tmp_path.iterdir()), "nothing to report, so no folder is filled"
    assert sidecars(engine, pair) == []


def test_a_name_that_is_none_is_refused_with_those_that_are(pair: Pair, tmp_path: Path) -> None:
    class Nobody:
        name = "no-such-container"

    status, _, said = run_attach(Nobody, tmp_path)
    assert (status, "There is no container no-such-container" in said) == (2, True), said
    assert pair.client.name in said.replace(" ", "")


def test_a_stopped_container_is_refused(pair: Pair, tmp_path: Path) -> None:
    pair.client.kill()
    pair.client.wait()
    status, _, said = run_attach(pair.client, tmp_path)
    assert (status, "exited" in said, "docker start" in said) == (2, True, True), said


def test_the_hosts_network_is_never_touched(engine: Engine, lab_image: str, tmp_path: Path) -> None:
    container = engine.client.containers.run(
        lab_image, ["-c", "import time; time.sleep(60)"], entrypoint=["python3"], network_mode="host", detach=True
    )
    try:
        status, _, said = run_attach(container, tmp_path)
        assert (status, "the host's own network" in said) == (4, True), said
    finally:
        container.remove(force=True)
