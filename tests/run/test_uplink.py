"""Runs whose server is outside: it truly sees a dead peer, the router stays silent, and the record claims no more.

The runs start together at the first test, since each mostly waits.
"""

import concurrent.futures
import contextlib
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import Unsupported, UsageError
from lab.core.giveup import predict
from lab.core.kernel import from_sysctls
from lab.core.prediction import Situation
from lab.core.profiles import PROFILES
from lab.core.segment import Segment
from lab.core.uplink import Uplink
from lab.pcap import read_packets
from lab.programs.report import errno_name
from lab.report.record import Cause, Outcome, Record
from lab.run.backend import open_docker, opener
from lab.run.runner import Run
from lab.run.spec import Program, RunSpec
from lab.testbed.docker.engine import Engine
from lab.testbed.owner import own_identity
from tests.engines import do_without, require_engine, require_lab_image
from tests.run.fakes import sysctls_of_linux
from tests.run.outside import PORT, Outside, death_of, network, reached, server

AT_ONCE = 2
TRIES = 3
TICK_S = 0.05
"""How much later than predicted the far kernel may be on a busy machine, and how closely its watcher looks."""

FAST = {"net.ipv4.tcp_rto_max_ms": "1000", "net.ipv4.tcp_retries2": "6"}
KEEPALIVE = ("--keepalive", "1/1/1")
HOST_TIMEOUT_S = 2.5
"""The server in this process gives up by TCP_USER_TIMEOUT: this machine's own settings are not the test's to change."""

BULK = 2_000_000
WIRE_LIMIT = 1460
"""Most octets of one segment on an Ethernet."""

FORGOTTEN_S = 10
"""``nf_conntrack_tcp_timeout_close``: how long a router remembers a connection that one end has reset."""


def talking(uplink: Uplink, *options: str, **changes: Any) -> RunSpec:
    plain: dict[str, Any] = {
        "server": None,
        "client": Program((uplink.host, str(uplink.port), *options), "lab.programs.client"),
        "port": uplink.port,
        "uplink": uplink,
        "ipv6": uplink.ipv6,
        "profile": PROFILES["fast"],
    }
    return RunSpec(**{**plain, **changes})


class HostServer:
    """A server in this process, at an address of this machine that containers reach: another kernel's namespace."""

    def __init__(self, address: str) -> None:
        self._listener = socket.create_server(
            (address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET
        )
        self.port: int = self._listener.getsockname()[1]
        self.errors: list[tuple[float, str | None]] = []
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._connections):
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(HOST_TIMEOUT_S * 1e3))
                self._connections.append(connection)
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        try:
            while data := connection.recv(4096):
                connection.sendall(data)
        except OSError as error:
            self.errors.append((time.monotonic(), errno_name(error)))

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"news\n")
                time.sleep(0.2)


@dataclass
class Batch:
    """Runs by name, their folders, and what the far ends said."""

    folder: Path
    far: Mapping[str, Outside]
    runs: dict[str, "concurrent.futures.Future[Record]"]
    host: HostServer

    def __getitem__(self, name: str) -> Record:
        return self.runs[name].result()

    def saw(self, name: str) -> list[Mapping[str, Any]]:
        """What reached the server of a run from its client while it was dark, and ICMP from anybody."""
        record = self[name]
        assert record.uplink is not None
        assert record.uplink.translated is not None
        port = int(record.uplink.translated.rpartition(":")[2])
        cut_at = self.cut_at(name)
        return reached(self.far[name].events(), port, cut_at + TICK_S, cut_at + (record.horizon_s or 0.0) + 0.2)

    def port(self, name: str) -> int:
        uplink = self[name].uplink
        assert uplink is not None
        assert uplink.translated is not None
        return int(uplink.translated.rpartition(":")[2])

    def cut_at(self, name: str) -> float:
        """CLOCK_MONOTONIC, which all nodes and the far end share."""
        lines = map(json.loads, (self.folder / name / "timeline.jsonl").read_text().splitlines())
        return float(next(line["at"] for line in lines if line["kind"] == "cut"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with require_engine() as found:
        yield found


@pytest.fixture(scope="module")
def image(engine: Engine) -> str:
    return require_lab_image(engine)


@pytest.fixture(scope="module")
def runs(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    if not Path("/proc/sys/net/ipv4/tcp_rto_max_ms").exists():
        do_without("the far end's give-up takes a quarter of an hour on a kernel without tcp_rto_max_ms")
    folder = tmp_path_factory.mktemp("uplink")
    with contextlib.ExitStack() as stack:
        # Somebody else's network need not have IPv6.
        both, four = (stack.enter_context(network(engine, ipv6=ipv6)) for ipv6 in (True, False))
        far = {
            name: stack.enter_context(server(engine, image, on, every_s=every_s, sysctls=FAST))
            for name, on, every_s in (("busy", both, 0.3), ("idle", four, 0.0), ("late", both, 13.0))
        }
        busy, idle, late = (far[name] for name in ("busy", "idle", "late"))
        specs: dict[str, tuple[Outside, RunSpec]] = {
            "late": (late, talking(of(late), "--idle-after", "3", *KEEPALIVE, watch_s=FORGOTTEN_S + 9.0)),
            "busy": (busy, talking(Uplink("staging.example.com", PORT, busy.ipv4), watch_s=8.0)),
            "ipv6": (busy, talking(Uplink("staging.example.com", PORT, busy.ipv6), watch_s=8.0)),
            "idle": (idle, talking(of(idle), "--idle-after", "3", watch_s=3.0)),
            "healed": (busy, talking(of(busy), heal_after_s=2.5, watch_s=5.0)),
            "bulk": (idle, talking(of(idle), "--fill", str(BULK), watch_s=2.0)),
            "reconnects": (idle, talking(of(idle), reconnect_at_s=1.0, watch_s=3.0)),
        }
        host = HostServer(busy.gateway)
        stack.callback(host.close)
        at_host = talking(Uplink(busy.gateway, host.port, busy.gateway), watch_s=6.0)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            started = {name: pool.submit(undisturbed, spec, folder / name) for name, (_, spec) in specs.items()}
            started["host"] = pool.submit(undisturbed, at_host, folder / "host")
            yield Batch(folder, {name: place for name, (place, _) in specs.items()}, started, host)


def undisturbed(spec: RunSpec, out: Path) -> Record:
    """The run, again where a busy machine spoilt it."""
    for _ in range(TRIES):
        record = Run(spec, open_docker(), out=out).execute()
        if not record.disturbed:
            break
        shutil.rmtree(out)
    return record


def of(far: Outside) -> Uplink:
    return Uplink(far.ipv4, PORT, far.ipv4)


def check(record: Record, name: str) -> str:
    [found] = [check for check in record.checks if check.name == name]
    assert found.ok
    return found.detail


@pytest.mark.parametrize("name", ["busy", "ipv6"])
def test_the_client_meets_its_predicted_fate_against_a_server_outside(runs: Batch, name: str) -> None:
    record = runs[name]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.uplink is not None
    assert record.uplink.host == "staging.example.com"
    assert record.observation.client.cause is Cause.RETRIES2
    assert record.observation.client.errno == "ETIMEDOUT"


@pytest.mark.parametrize("name", ["busy", "ipv6"])
def test_the_far_kernel_gives_up_by_itself_when_its_own_rule_says(runs: Batch, name: str) -> None:
    record, port, cut_at = runs[name], runs.port(name), runs.cut_at(name)
    events = runs.far[name].events()
    before = [event for event in events if event.get("sample") == port and event["at"] < cut_at][-1]
    lost_s = record.observation.server.first_lost_s
    due = predict(
        Situation(
            settings=from_sysctls(sysctls_of_linux() | FAST, hz=record.settings.hz or 250),
            rto_s=before["rto_s"],
            srtt_s=before["srtt_s"],
            writes_on=True,
        )
    )
    gone_at, told = death_of(events, port)

    assert due.window_s is not None
    assert lost_s is not None
    assert gone_at is not None
    assert told == "ETIMEDOUT"
    assert due.window_s[0] - TICK_S <= gone_at - cut_at - lost_s <= due.window_s[1] + TICK_S


def test_the_far_ends_copies_on_the_uplink_are_its_kernels_own_count(runs: Batch) -> None:
    record, port = runs["busy"], runs.port("busy")
    counted = max(e["total_retrans"] for e in runs.far["busy"].events() if e.get("sample") == port)

    assert record.observation.server.copies == counted


@pytest.mark.parametrize("name", ["busy", "ipv6", "idle", "late"])
def test_nothing_whatever_reaches_the_far_end_while_it_is_dark(runs: Batch, name: str) -> None:
    assert runs[name].outcome is Outcome.CONFIRMED, runs[name].reason
    assert runs.saw(name) == []


def test_an_outside_server_is_not_claimed_to_be_observed(runs: Batch) -> None:
    record = runs["busy"]
    server_seen, predicted = record.observation.server, record.prediction.server

    assert (predicted.applied, predicted.sending, predicted.idle) == (None, None, None)
    assert (server_seen.gave_up_s, server_seen.cause, server_seen.never_told) == (None, None, None)
    assert record.settings.server == {}
    assert "server" not in record.counters
    assert not [check.name for check in record.checks if check.name.startswith("server-")]


def test_the_translation_is_read_from_the_router_and_the_bystander_talks_in_the_testbed(runs: Batch) -> None:
    record = runs["busy"]

    assert "outside; before the cut" in check(record, "translated")
    assert record.observation.bystander.alive
    assert record.observation.bystander.lost == 0
    matched = record.fault.matched
    assert (matched.forward or 0) > 0
    assert (matched.return_ or 0) > 0


def test_where_nothing_comes_back_the_way_back_has_nothing_to_prove(runs: Batch) -> None:
    record = runs["idle"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (record.fault.matched.forward, record.fault.matched.return_) == (1, 0), "one nudge, and none from outside"
    assert "nothing came from outside" in check(record, "rule-matched-return")


def test_a_translation_outlives_the_reset_of_the_client_that_no_far_end_hears(runs: Batch) -> None:
    """The client's keepalive death sends a RST into the hole, and the router sees it first."""
    record = runs["late"]
    lost_s = record.observation.server.first_lost_s

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.KEEPALIVE
    assert lost_s is not None
    assert lost_s > (record.observation.client.gave_up_s or 0.0) + FORGOTTEN_S - 4
    assert (record.observation.server.copies or 0) > 0, "it was not told, and sends again"


def test_what_comes_merged_from_outside_is_passed_on_as_it_came(runs: Batch) -> None:
    """The far end's interface merges what it sends, as a machine's own does with what it receives."""
    record = runs["bulk"]
    came = [packet for packet in read_packets(runs.folder / "bulk" / "right.pcapng") if isinstance(packet, Segment)]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert max(s.length for s in came if s.source.port == PORT) > WIRE_LIMIT, "nothing was merged: nothing is shown"
    assert max(s.length for s in came if s.destination.port == PORT) <= WIRE_LIMIT


def test_a_heal_brings_the_far_end_back(runs: Batch) -> None:
    record = runs["healed"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.recovered_s is not None
    assert record.observation.server.recovered_s is not None
    assert death_of(runs.far["healed"].events(), runs.port("healed"))[1] != "ETIMEDOUT"


def test_a_new_connection_to_the_far_end_passes(runs: Batch) -> None:
    record = runs["reconnects"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.reconnected is True


def test_a_way_out_over_this_machine_is_translated_twice_and_nobody_answers_for_the_client(runs: Batch) -> None:
    """The lab's own network leads to the host, whose rules translate what leaves it; the far kernel gives up itself."""
    record, cut_at = runs["host"], runs.cut_at("host")
    lost_s = record.observation.server.first_lost_s

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert lost_s is not None
    [(at, error)] = runs.host.errors
    assert error == "ETIMEDOUT", "a reset or an ICMP error would have told it otherwise"
    assert HOST_TIMEOUT_S <= at - cut_at - lost_s < HOST_TIMEOUT_S + 1.5


def test_nothing_of_a_run_is_left_and_a_strangers_network_is_left_as_it_was(runs: Batch, engine: Engine) -> None:
    for name in runs.runs:
        assert runs[name]
    labels = {"label": [f"{label}={value}" for label, value in (("dev.blackhole-lab.owner", own_identity()),)]}
    roles = {
        c.labels["dev.blackhole-lab.role"]
        for c in engine.client.containers.list(all=True, ignore_removed=True, filters=labels)
    }

    assert roles <= {"outside", "reaper"}
    assert {n.attrs["Labels"]["dev.blackhole-lab.role"] for n in engine.client.networks.list(filters=labels)} == {
        "outside"
    }


def test_a_port_on_which_nobody_listens_is_said(runs: Batch, tmp_path: Path) -> None:
    far = runs.far["idle"]
    spec = talking(Uplink(far.ipv4, PORT + 1, far.ipv4))

    with pytest.raises(UsageError, match=f"{PORT + 1} cannot be connected to: ECONNREFUSED") as caught:
        Run(spec, open_docker(), out=tmp_path).execute()
    assert "accepts connections" in (caught.value.fix or "")


def test_the_embedded_backend_has_no_way_out_and_says_why(tmp_path: Path) -> None:
    spec = talking(Uplink("203.0.113.9", 443, "203.0.113.9"))

    with pytest.raises(Unsupported, match=r"slirp4netns, pasta.*go on acknowledging.*Fix: --backend docker"):
        Run(spec, opener("netns"), out=tmp_path).execute()
