"""The control API beside an embedded testbed: real flows, real cuts, over a Unix socket."""

import itertools
import json
import os
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.control.address import Address
from lab.control.controller import Controller
from lab.control.server import beside
from lab.pcap import read_segments
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import Process
from tests.control import unix
from tests.control.fakes import FakeRouter, until

PORT = 5000
CALM_S = 1.1
"""Longer than the second before a cut in which the captures must be complete."""


@dataclass(frozen=True)
class Place:
    """A testbed with its API."""

    testbed: NetnsTestbed
    socket: Path
    ports: Iterator[int]

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        return unix.ask(self.socket, method, target, body)

    def cut(self, **order: Any) -> dict[str, Any]:
        status, body = self.ask("POST", "/faults", order)
        assert status == 201, body
        made: dict[str, Any] = body
        return made

    def talk(self, *options: str) -> tuple[int, Process]:
        """A client that sends a line four times a second, and its port."""
        port = next(self.ports)
        client = self.testbed.client.spawn_module(
            "lab.programs.client", ["server", str(PORT), "--bind-port", str(port), *options]
        )
        client.wait_for_line('"received"', 10)
        return port, client


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder, NetnsTestbed() as testbed:
        server = testbed.server.spawn_module("lab.programs.server", [str(PORT)])
        server.wait_for_line('"listening"', 10)
        path = Path(folder, "c.sock")
        with beside(testbed.router, Address(path=path), Path(folder)):
            place = Place(testbed, path, itertools.count(42000))
            until(lambda: place.ask("GET", "/healthz")[1]["capture"] == "running")
            yield place


def received(client: Process) -> int:
    return sum('"received"' in line.text for line in client.lines)


def test_the_socket_is_its_users_alone(place: Place) -> None:
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600


def test_a_cut_darkens_one_flow_and_a_heal_brings_it_back(place: Place) -> None:
    port, client = place.talk()
    _, other = place.talk()
    time.sleep(CALM_S)
    fault = place.cut(select={"server_port": PORT, "which": port})
    before, other_before = received(client), received(other)
    _, third = place.talk()
    until(lambda: received(other) > other_before + 3)

    assert received(client) <= before + 1, "an answer may have been under way"
    assert received(third) > 0, "a new connection passes"
    status, healed = place.ask("DELETE", f"/faults/{fault['id']}")
    assert (status, healed["state"]) == (200, "healed")
    assert healed["matched"]["forward"] >= 3
    until(lambda: received(client) > before + 3)


def test_the_verdict_says_that_the_hole_was_a_hole(place: Place) -> None:
    port, client = place.talk()
    time.sleep(CALM_S)
    fault = place.cut(select={"server_port": PORT, "which": port})
    time.sleep(1.2)
    status, open_ = place.ask("GET", f"/faults/{fault['id']}/verdict")
    before = received(client)
    _, healed = place.ask("DELETE", f"/faults/{fault['id']}")
    until(lambda: received(client) > before)
    _, final = place.ask("GET", f"/faults/{fault['id']}/verdict")

    assert status == 200
    assert (open_["outcome"], open_["final"], open_["came_back"]) == ("confirmed", False, None), open_["reason"]
    assert (final["outcome"], final["final"], final["came_back"]) == ("confirmed", True, True), final["reason"]
    assert final["crossed"] == {"segments": 0, "rst": 0, "fin": 0, "icmp": 0}
    assert final["forward"]["matched"] == final["forward"]["missing"] == healed["matched"]["forward"]
    assert final["forward"]["copies"] >= 2
    assert 0 < final["forward"]["first_lost_s"] < final["forward"]["copy_times_s"][0]
    assert final["forward"]["copy_times_s"] == sorted(final["forward"]["copy_times_s"])
    assert final["forward"]["back_s"] > healed["healed_after_s"]
    assert (final["return"]["matched"], final["return"]["copies"]) == (0, 0), "the server had nothing to answer"


def test_a_second_cut_of_the_same_flow_is_judged_by_itself(place: Place) -> None:
    port, client = place.talk()
    time.sleep(CALM_S)
    verdicts = []
    for _ in range(2):
        fault = place.cut(select={"server_port": PORT, "which": port})
        time.sleep(0.8)
        before = received(client)
        place.ask("DELETE", f"/faults/{fault['id']}")
        until(lambda before=before: received(client) > before)  # type: ignore[misc]  # bound now, not later
        verdicts.append(place.ask("GET", f"/faults/{fault['id']}/verdict")[1])

    assert [one["outcome"] for one in verdicts] == ["confirmed", "confirmed"], [one["reason"] for one in verdicts]
    assert all(0 < one["forward"]["missing"] < 8 for one in verdicts)


def test_a_hole_that_nothing_entered_proves_nothing(place: Place) -> None:
    port, _ = place.talk("--idle-after", "1")
    time.sleep(CALM_S)
    fault = place.cut(select={"server_port": PORT, "which": port})
    _, verdict = place.ask("GET", f"/faults/{fault['id']}/verdict")
    place.ask("DELETE", f"/faults/{fault['id']}")

    assert verdict["outcome"] == "invalid"
    assert verdict["reason"] == "rules-matched: the rules dropped 0 packets (at least 1)"


def test_only_the_way_back_is_dark_where_that_was_asked_for(place: Place) -> None:
    port, _ = place.talk()
    time.sleep(CALM_S)
    fault = place.cut(select={"server_port": PORT, "which": port}, direction="return")
    time.sleep(1.0)
    _, verdict = place.ask("GET", f"/faults/{fault['id']}/verdict")
    place.ask("DELETE", f"/faults/{fault['id']}")

    assert verdict["outcome"] == "confirmed", verdict["reason"]
    assert (verdict["forward"]["cut"], verdict["return"]["cut"]) == (False, True)
    assert verdict["return"]["matched"] >= 2
    assert verdict["forward"]["matched"] == 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_capture_is_complete_to_the_moment_of_the_request(place: Place, side: str, tmp_path: Path) -> None:
    port, client = place.talk("--idle-after", "3")
    until(lambda: received(client) == 3)
    path = tmp_path / "side.pcapng"
    path.write_bytes(place.ask("GET", f"/captures/{side}")[1])
    again = tmp_path / "again.pcapng"
    again.write_bytes(place.ask("GET", f"/captures/{side}")[1])

    lengths = [s.length for s in read_segments(path) if s.source.port == port and s.length]
    assert len(lengths) == 3
    told = subprocess.run(
        ["tshark", "-r", str(path), "-Y", f"tcp.srcport == {port} && tcp.len > 0", "-T", "fields", "-e", "tcp.len"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(line) for line in told.stdout.split()] == lengths
    assert "damaged" not in told.stderr
    assert again.stat().st_size >= path.stat().st_size, "the capture goes on"


def test_events_come_in_order_and_from_where_the_listener_left(place: Place) -> None:
    port, _ = place.talk()
    seen: list[dict[str, Any]] = []

    def listen() -> None:
        for event in unix.events(place.socket):
            seen.append(event)
            if event["event"] == "healed" and event["data"]["flow"]["client"].endswith(f":{port}"):
                return

    listener = threading.Thread(target=listen)
    listener.start()
    fault = place.cut(select={"server_port": PORT, "which": port})
    until(lambda: place.ask("GET", f"/faults/{fault['id']}")[1]["matched"]["forward"])
    time.sleep(0.3)
    place.ask("DELETE", f"/faults/{fault['id']}")
    listener.join(10)

    mine = [one for one in seen if one["data"].get("fault") == fault["id"]]
    assert [one["event"] for one in mine if one["event"] != "matched"] == ["cut", "healed"]
    assert mine[1]["event"] == "matched"
    numbers = [int(one["id"].partition(".")[2]) for one in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    missed = next(iter(unix.events(place.socket, mine[0]["id"])))
    assert missed["id"] == seen[seen.index(mine[0]) + 1]["id"]


def test_two_clients_at_once_cut_and_heal_their_own_flows(place: Place) -> None:
    flows = [place.talk() for _ in range(2)]

    def cycle(port: int) -> list[int]:
        statuses = []
        for _ in range(10):
            status, fault = place.ask("POST", "/faults", {"select": {"server_port": PORT, "which": port}})
            statuses += [status, place.ask("DELETE", f"/faults/{fault['id']}")[0]]
        return statuses

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(cycle, (port for port, _ in flows))) == [[201, 200] * 10] * 2


def test_fifty_cuts_and_heals_leave_the_flow_alive(place: Place) -> None:
    port, client = place.talk()
    for _ in range(50):
        fault = place.cut(select={"server_port": PORT, "which": port})
        assert place.ask("DELETE", f"/faults/{fault['id']}")[0] == 200
    before = received(client)
    until(lambda: received(client) > before + 2)

    assert client.returncode is None


def test_an_orderly_end_heals_and_ends_the_streams_within_two_seconds(tmp_path: Path) -> None:
    router = FakeRouter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.sock")
        with beside(router, Address(path=path), tmp_path) as (controller, _):
            stream = threading.Thread(target=lambda: list(unix.events(path)))
            stream.start()
            until(lambda: controller.events._listeners)
            assert unix.ask(path, "POST", "/faults", {"select": {"server_port": PORT}})[0] == 201
            began = time.monotonic()
        assert time.monotonic() - began < 2
        stream.join(1)

        assert not stream.is_alive()
        assert not router.cut_now
        assert not path.exists()


def test_what_a_client_on_tcp_needs_is_the_token(tmp_path: Path) -> None:
    # A proxy of this machine's would be asked for the loopback address.
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    with beside(FakeRouter(), Address("127.0.0.1", 0), tmp_path, token="secret") as (_, place):
        told = [
            subprocess.run(
                ["curl", "-sS", "-w", "%{http_code}", *words, f"http://{place}/flows"],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            ).stdout
            for words in ([], ["-H", "Authorization: Bearer secret"])
        ]

    assert told[0].endswith("401")
    assert told[1].endswith("200")
    assert json.loads(told[1].removesuffix("200"))["flows"]


def test_a_client_that_leaves_in_the_middle_of_a_stream_is_forgotten(tmp_path: Path, router: FakeRouter) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.sock")
        with beside(router, Address(path=path), tmp_path) as (controller, _):
            connection = unix.UnixConnection(path)
            connection.request("GET", "/events")
            connection.getresponse().read(5)
            until(lambda: controller.events._listeners)
            connection.close()
            assert connection.sock is None
            _settle(controller)


def _settle(controller: Controller) -> None:
    """The server notices at the latest with what it has to say next."""
    controller.events.publish(0.0, "matched", {})
    controller.events.publish(0.0, "matched", {})
    until(lambda: not controller.events._listeners)
