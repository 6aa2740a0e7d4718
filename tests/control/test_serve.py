"""``python -m lab.control.serve`` as it runs in a router: in the namespace of one, as a program of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.control.serve import token_of
from lab.core.errors import UsageError
from lab.testbed.netns import NetnsTestbed, open_testbed
from lab.testbed.ports import Process
from tests.control import unix
from tests.control.fakes import until

PORT = 5000
LONGEST_END_S = 2.0


@pytest.fixture(scope="module")
def testbed() -> Iterator[NetnsTestbed]:
    with open_testbed() as testbed:
        server = testbed.server.spawn_module("lab.programs.server", [str(PORT)])
        server.wait_for_line('"listening"', 10)
        yield testbed


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def start(testbed: NetnsTestbed, *options: str, env: Mapping[str, str] | None = None) -> Process:
    """The program in the router, once it listens; its environment has no token unless one is given."""
    argv = [sys.executable, "-m", "lab.control.serve", "--left", "192.0.2.0/24", "--right", "198.51.100.1", *options]
    words = ["env", "-u", "LAB_TOKEN", *argv] if env is None else argv
    program = testbed.router.spawn(words, env=env)
    program.wait_for_line("listening on", 30)
    return program


def rules(testbed: NetnsTestbed) -> str:
    """Whatever of the lab's rules the router has, in both kinds of tables."""
    found = ""
    for words in (["iptables-legacy-save", "-t", "mangle"], ["nft", "list", "ruleset"]):
        program = testbed.router.spawn(words)
        program.wait(10)
        found += "\n".join(line.text for line in program.lines if "fault-" in line.text)
    return found


def curl(testbed: NetnsTestbed, *words: str) -> dict[str, Any]:
    """What the client node gets of the router by its name."""
    program = testbed.client.spawn(["curl", "-sS", *words])
    assert program.wait(20) == 0, program.lines
    answer: dict[str, Any] = json.loads("".join(line.text for line in program.lines))
    return answer


@pytest.mark.parametrize("firewall", ["iptables", "nftables"])
def test_a_flow_is_cut_from_another_host_and_sigterm_heals_it(testbed: NetnsTestbed, firewall: str) -> None:
    program = start(testbed, "--listen", "0.0.0.0:8474", "--firewall", firewall, env={"LAB_TOKEN": "secret"})
    client = testbed.client.spawn_module("lab.programs.client", ["server", str(PORT)])
    client.wait_for_line('"received"', 10)
    bearer = ["-H", "Authorization: Bearer secret"]
    assert curl(testbed, "http://router:8474/flows")["status"] == 401
    flows = curl(testbed, *bearer, "http://router:8474/flows")["flows"]
    # What an earlier controller's connection tracking has seen is still listed: it was deaf to the end.
    body = json.dumps({"select": {"server_port": PORT, "which": "newest"}})
    fault = curl(testbed, *bearer, "--json", body, "http://router:8474/faults")
    until(lambda: curl(testbed, *bearer, f"http://router:8474/faults/{fault['id']}")["matched"]["forward"] > 1)
    assert rules(testbed)
    stream = testbed.client.spawn(["curl", "-sSN", *bearer, "http://router:8474/events"])
    stream.wait_for_line("event: matched", 10)
    began = time.monotonic()
    program.send_signal(signal.SIGTERM)

    assert program.wait(10) == 0
    assert time.monotonic() - began < LONGEST_END_S
    assert {flow["server"] for flow in flows} == {f"198.51.100.20:{PORT}"}, "its own connections are left out"
    stream.wait_for_line("event: closing", 5)
    assert not rules(testbed)
    healed_at = time.monotonic()
    client.wait_for_line('"received"', 20, since=healed_at)
    assert "secret" not in "".join(line.text for line in program.lines)
    client.send_signal(signal.SIGTERM)
    client.wait(10)


def test_without_a_token_one_is_made_and_printed_once(testbed: NetnsTestbed) -> None:
    program = start(testbed, "--listen", "127.0.0.1:0")
    tokens = [line.text.split()[2] for line in program.lines if " token " in line.text]
    program.send_signal(signal.SIGTERM)

    assert program.wait(10) == 0
    assert len(tokens) == 1
    assert len(tokens[0]) >= 32


def test_on_a_unix_socket_a_silent_owner_heals_everything(testbed: NetnsTestbed, folder: Path) -> None:
    path = folder / "c.sock"
    program = start(testbed, "--listen", f"unix:{path}", "--heartbeat", "0.5")
    order = {"flow": {"client": "192.0.2.10:40000", "server": "198.51.100.20:5000"}, "must_exist": False}
    _, fault = unix.ask(path, "POST", "/faults", order)
    assert unix.ask(path, "POST", "/heartbeat")[1] == {"heartbeat": "alive", "heartbeat_s": 0.5}
    program.wait_for_line("heartbeat-lost", 5)
    until(lambda: unix.ask(path, "GET", f"/faults/{fault['id']}")[1]["healed_by"] == "heartbeat")

    assert unix.ask(path, "GET", "/healthz")[1]["heartbeat"] == "lost"
    program.send_signal(signal.SIGINT)
    assert program.wait(10) == 0
    assert not path.exists()


def test_the_first_cut_after_the_start_is_soon(testbed: NetnsTestbed, folder: Path) -> None:
    path = folder / "c.sock"
    program = start(testbed, "--listen", f"unix:{path}")
    until(lambda: path.exists() and unix.ask(path, "GET", "/healthz")[0] == 200)
    asked_at = time.time()
    order = {"flow": {"client": "[2001:db8:1::10]:40000", "server": "[2001:db8:2::20]:5000"}, "must_exist": False}
    status, fault = unix.ask(path, "POST", "/faults", order)
    program.send_signal(signal.SIGTERM)
    program.wait(10)

    assert status == 201
    assert fault["cut_at"] - asked_at < 0.05 * slowness()


def slowness() -> float:
    """How many times slower than alone this machine may be just now."""
    return max(1.0, os.getloadavg()[0])


def test_a_kill_of_the_controller_ends_its_capture_too(testbed: NetnsTestbed, folder: Path) -> None:
    # What a kill leaves behind goes with the test's own folder.
    program = start(testbed, "--listen", f"unix:{folder}/c.sock", env={"XDG_RUNTIME_DIR": str(folder)})
    program.wait_for_line("capture-started", 20)

    def packet_sockets() -> int:
        seen = testbed.router.spawn(["cat", "/proc/net/packet"])
        seen.wait(10)
        return len(seen.lines) - 1

    assert packet_sockets() == 2
    program.send_signal(signal.SIGKILL)
    program.wait(10)
    until(lambda: packet_sockets() == 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--left", "nix0"], "Exactly one interface was expected to be 'nix0'"),
        (["--listen", "8474"], "An address to listen on was expected"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_status_2(options: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.control.serve", *options], capture_output=True, text=True, check=False, timeout=30
    )

    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_token_comes_from_the_environment_or_a_file(folder: Path) -> None:
    path = folder / "token"
    path.write_text("from-a-file\n")

    assert token_of({}) is None
    assert token_of({"LAB_TOKEN": "x", "LAB_TOKEN_FILE": str(path)}) == "x"
    assert token_of({"LAB_TOKEN_FILE": str(path)}) == "from-a-file"


@pytest.mark.parametrize(
    "environment", [{"LAB_TOKEN": ""}, {"LAB_TOKEN": "a b"}, {"LAB_TOKEN": "é"}, {"LAB_TOKEN_FILE": "/nix"}]
)
def test_a_token_that_is_none_is_a_usage_error(environment: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        token_of(environment)
