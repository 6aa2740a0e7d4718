"""Runs in real namespaces: what spoils one makes it INVALID and says why, and a prediction that is off is REFUTED.

All runs start together at the first test, since each mostly waits.
"""

import concurrent.futures
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lab.core.fault import Cut, Fault, Matched, Placement, Scope
from lab.core.flow import Endpoint
from lab.core.profiles import PROFILES
from lab.core.timeline import ClockPair, Observation
from lab.pcap.writer import PcapngWriter, Source
from lab.report.record import Cause, NoticedBy, Outcome, Record
from lab.run.fate import ABORTED, ENDED_OPEN
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from lab.run.trigger import LineTrigger
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import CaptureSummary, CutReceipt, TestbedSpec

PORT = 5000
AT_ONCE = 6
"""Runs side by side; more would date deaths badly on two busy processors."""

TRIES = 3
SOON = {node: {"net.ipv4.tcp_retries2": "3"} for node in ("client", "server")}
"""With the fast profile: a give-up after some four seconds."""

ECHO = f"""
import socket
listener = socket.create_server(("", {PORT}))
while True:
    connection, _ = listener.accept()
    while data := connection.recv(100):
        connection.sendall(data)
"""
CONNECT = f"""
import socket, sys, time
s = socket.create_connection(("server", {PORT}))
"""
TALK = """
while True:
    s.sendall(b"x")
    s.recv(10)
    time.sleep(0.2)
"""
WATCHDOG = """
s.settimeout(1)
try:
    while True:
        s.sendall(b"x")
        s.recv(10)
        time.sleep(0.2)
except TimeoutError:
    s.close()
print("watchdog", flush=True)
time.sleep(60)
"""
KEEPALIVE = """
s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
for option, value in ((socket.TCP_KEEPIDLE, 2), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 2)):
    s.setsockopt(socket.IPPROTO_TCP, option, value)
s.sendall(b"x")
s.recv(10)
try:
    s.recv(10)
except OSError as error:
    print("lost:", error.errno, flush=True)
time.sleep(60)
"""
FLOOD = """
s.sendall(b"x" * 10)
s.recv(1)
s.sendall(bytes(10_000_000))
"""
DEAF = """
import time
connection.sendall(connection.recv(10))
time.sleep(60)
"""
STORY = """
for _ in range(8):
    s.sendall(b"x")
    s.recv(10)
    time.sleep(0.1)
print("asked", flush=True)
time.sleep(0.4)
s.sendall(b"y")
time.sleep(1)
print("path back, please", flush=True)
s.recv(10)
print("answered", flush=True)
time.sleep(1)
print("done", flush=True)
time.sleep(60)
"""
ABORT = f"""
other = socket.create_connection(("server", {PORT + 1}))
other.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 500)
while True:
    try:
        s.sendall(b"x")
        other.sendall(b"x")
        time.sleep(0.1)
    except TimeoutError:
        break
time.sleep(1)
s.close()
print("closed", flush=True)
time.sleep(60)
"""
"""Two connections; the first one has answers that nobody reads, and is closed a second after the second one's end."""

ECHOES = f"""
import socket, threading
def echo(connection):
    while data := connection.recv(100):
        connection.sendall(data)
def serve(port):
    listener = socket.create_server(("", port))
    while True:
        threading.Thread(target=echo, args=listener.accept()[:1], daemon=True).start()
threading.Thread(target=serve, args=({PORT + 1},), daemon=True).start()
serve({PORT})
"""
USER_TIMEOUT = "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2500)\n" + TALK


def python(*code: str) -> Program:
    """A program that the lab does not know."""
    return Program(("python3", "-u", "-c", "".join(code)))


def foreign(then: str = TALK, **changes: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "server": python(ECHO),
        "client": python(CONNECT, then),
        "port": PORT,
        "profile": PROFILES["fast"],
        "sysctls": SOON,
        "cut_after_s": 0.3,
        **changes,
    }
    return RunSpec(**fields)


def own(**changes: Any) -> RunSpec:
    """The lab's own programs; the client sends one line into the hole."""
    fields: dict[str, Any] = {
        "server": Program((str(PORT),), "lab.programs.server"),
        "client": Program(("server", str(PORT), "--idle-after", "3"), "lab.programs.client"),
        "actions": (Action(0.05, "client", "send"),),
        "writes_on": False,
        "watch_s": 1.2,
        **changes,
    }
    return foreign(**fields)


class BrokenRouter:
    """A router that does something else than it says.

    Args:
        real: The router.
        wrong: What it does in place of a fault.
        summary: What it makes of a capture.
        heals: How it heals.
    """

    def __init__(
        self,
        real: Any,
        wrong: Callable[[Fault], Fault],
        summary: Callable[[CaptureSummary], CaptureSummary],
        heals: Callable[[Any, Fault], CutReceipt] = lambda router, fault: router.heal(fault),
    ):
        self._real = real
        self._wrong = wrong
        self._summary = summary
        self._heals = heals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def prepare(self, fault: Fault) -> None:
        self._real.prepare(self._wrong(fault))

    def cut(self, fault: Fault) -> CutReceipt:
        if self._wrong is no_rule:
            now = time.monotonic()
            return CutReceipt(now, now)
        receipt: CutReceipt = self._real.cut(self._wrong(fault))
        return receipt

    def heal(self, fault: Fault) -> CutReceipt:
        return self._heals(self._real, self._wrong(fault))

    def matched(self, fault: Fault) -> Matched:
        matched: Matched = self._real.matched(self._wrong(fault))
        return matched

    def stop_capture(self) -> CaptureSummary:
        return self._summary(self._real.stop_capture())


class BrokenTestbed(NetnsTestbed):
    """A testbed with a broken router."""

    sabotage: "Sabotage"

    @property
    def router(self) -> Any:
        return BrokenRouter(super().router, self.sabotage.wrong, self.sabotage.summary, self.sabotage.heals)


@dataclass
class Sabotage:
    """What goes wrong behind the run's back."""

    spec: RunSpec
    wrong: Callable[[Fault], Fault] = lambda fault: fault
    summary: Callable[[CaptureSummary], CaptureSummary] = lambda summary: summary
    heals: Callable[[Any, Fault], CutReceipt] = lambda router, fault: router.heal(fault)
    at_cut: Callable[[NetnsTestbed, Fault], None] = lambda _testbed, _fault: None
    after_s: float = 0.0
    """How long after the cut that happens."""

    _testbed: list[NetnsTestbed] = field(default_factory=list)

    def open(self, spec: TestbedSpec) -> NetnsTestbed:
        class Broken(BrokenTestbed):
            sabotage = self

        opened = Broken(spec)
        self._testbed[:] = [opened]
        return opened

    def run(self, out: Path, stop: threading.Event) -> Record:
        cut_at: list[float] = []

        def tell(seen: Observation) -> None:
            if seen.kind == "cut":
                cut_at[:] = [seen.at]
            elif seen.kind == "look" and cut_at and seen.at >= cut_at[0] + self.after_s:
                cut_at.clear()
                fault = run._known.fault
                assert fault is not None
                self.at_cut(self._testbed[0], fault)

        run = Run(self.spec, self.open, out=out, tell=tell, stop=stop)
        return run.execute()


def other_port(fault: Fault) -> Fault:
    client = Endpoint(fault.flow.client.address, fault.flow.client.port ^ 1)
    return replace(fault, flow=fault.flow._replace(client=client))


def no_rule(fault: Fault) -> Fault:
    """The router prepares all, and at the cut does nothing."""
    return fault


def forward_alone(fault: Fault) -> Fault:
    return replace(fault, direction=Cut.FORWARD)


def both_ways(fault: Fault) -> Fault:
    return replace(fault, direction=Cut.BOTH)


def heal_nothing(_: Any, __: Fault) -> CutReceipt:
    now = time.monotonic()
    return CutReceipt(now, now)


def heal_forward_alone(router: Any, fault: Fault) -> CutReceipt:
    router.cut(replace(fault, direction=Cut.RETURN))
    receipt: CutReceipt = router.heal(fault)
    return receipt


def heal(testbed: NetnsTestbed, fault: Fault) -> None:
    NetnsTestbed.router.fget(testbed).heal(fault)  # type: ignore[attr-defined]


def kill_bystander(testbed: NetnsTestbed, _: Fault) -> None:
    testbed.client.processes()[0].send_signal(9)


def kill_server(testbed: NetnsTestbed, _: Fault) -> None:
    next(one for one in testbed.server.processes() if str(PORT) in one.argv).send_signal(9)


def fewer_retries(testbed: NetnsTestbed, _: Fault) -> None:
    testbed.client.write_sysctl("net.ipv4.tcp_retries2", "3")


def more_orphan_retries(testbed: NetnsTestbed, _: Fault) -> None:
    testbed.client.write_sysctl("net.ipv4.tcp_orphan_retries", "4")


def stepped(summary: CaptureSummary) -> CaptureSummary:
    first, last = summary.clocks[0], summary.clocks[-1]
    return replace(summary, clocks=(first, ClockPair(last.wall + 1.0, last.monotonic)))


IDLE = own(actions=())
HEALED = own(heal_after_s=0.6, sysctls={}, watch_s=1.6)
DEAF_ECHO = python(ECHO.partition("    while")[0], *(f"    {line}\n" for line in DEAF.split("\n")))


def swapped(summary: CaptureSummary) -> CaptureSummary:
    return replace(summary, files={"left": summary.right, "right": summary.left})


def emptied(summary: CaptureSummary) -> CaptureSummary:
    """As if the sink's capture had seen nothing; the one of the way in has none of that either."""
    return replace(summary, files={**summary.files, "sink": _without_packets(summary)})


def _without_packets(summary: CaptureSummary) -> Path:
    source = Source("lab-sink", "nothing", "", "", "", "")
    path = summary.files["sink"].with_name("empty.pcapng")
    PcapngWriter(path, source).close()
    return path


RUNS: dict[str, Sabotage] = {
    "wrong port": Sabotage(own(), wrong=other_port),
    "wrong port, idle": Sabotage(IDLE, wrong=other_port),
    "no rule": Sabotage(own(), wrong=no_rule),
    "no rule, idle": Sabotage(IDLE, wrong=no_rule),
    "server killed": Sabotage(own(watch_s=None), at_cut=kill_server),
    "wrong port, sink": Sabotage(own(placement=Placement.CLIENT_SINK), wrong=other_port),
    "wrong port, idle, sink": Sabotage(replace(IDLE, placement=Placement.CLIENT_SINK), wrong=other_port),
    "sink unseen": Sabotage(own(placement=Placement.CLIENT_SINK), summary=emptied),
    "sink": Sabotage(own(placement=Placement.CLIENT_SINK)),
    "sink, busy": Sabotage(foreign(placement=Placement.SERVER_SINK, watch_s=1.2)),
    "sink, idle": Sabotage(replace(IDLE, placement=Placement.SERVER_SINK)),
    "both ways, one asked": Sabotage(own(direction=Cut.FORWARD), wrong=both_ways),
    "both ways, one asked, busy": Sabotage(foreign(direction=Cut.RETURN, watch_s=1.2), wrong=both_ways),
    "never healed": Sabotage(HEALED, heals=heal_nothing),
    "never healed, idle": Sabotage(replace(HEALED, actions=()), heals=heal_nothing),
    "healed one way": Sabotage(HEALED, heals=heal_forward_alone),
    "one way only": Sabotage(foreign(watch_s=1.2), wrong=forward_alone),
    "healed behind the back": Sabotage(own(watch_s=2.5), at_cut=heal, after_s=0.6),
    "healed behind the back, idle": Sabotage(IDLE, at_cut=heal),
    "bystander killed": Sabotage(own(), at_cut=kill_bystander),
    "wrong interface": Sabotage(own(), summary=lambda s: replace(s, files={"left": s.left, "right": s.left})),
    "interfaces swapped": Sabotage(own(), summary=swapped),
    "packets dropped": Sabotage(own(), summary=lambda s: replace(s, dropped={"left": 1, "right": 0})),
    "clock stepped": Sabotage(own(), summary=stepped),
    "prediction off": Sabotage(own(watch_s=None, sysctls={}), at_cut=fewer_retries),
    "orphan's prediction off": Sabotage(
        own(sysctls={}, watch_s=6.0, actions=(Action(0.05, "client", "send"), Action(1.2, "client", "close"))),
        at_cut=more_orphan_retries,
    ),
    "undisturbed": Sabotage(own()),
    "foreign busy": Sabotage(foreign(noticed="TimeoutError")),
    "foreign exits": Sabotage(foreign(direction=Cut.RETURN)),
    "foreign watchdog": Sabotage(foreign(WATCHDOG)),
    "foreign keepalive": Sabotage(foreign(KEEPALIVE, noticed="lost: 110")),
    "foreign user timeout": Sabotage(foreign(USER_TIMEOUT, sysctls={})),
    "foreign closed window": Sabotage(foreign(FLOOD, server=DEAF_ECHO)),
    "foreign closed window, later": Sabotage(foreign(FLOOD, server=DEAF_ECHO, cut_after_s=1.0)),
    "foreign abort": Sabotage(foreign(ABORT, scope=Scope.HOST, server=python(ECHOES), watch_s=4.0)),
    "foreign healed": Sabotage(foreign(heal_after_s=1.0, sysctls={})),
    "triggered": Sabotage(
        foreign(
            STORY,
            cut_when=LineTrigger("client", "^asked"),
            heal_when=LineTrigger("client", "^path back", delay_s=0.2),
            end_when=LineTrigger("client", "^done"),
        )
    ),
    "triggered by the server": Sabotage(
        own(cut_when=LineTrigger("server", '"received".*"total": 21'), actions=(), watch_s=1.2)
    ),
    "foreign never": Sabotage(foreign(watch_s=1.5, noticed="no such line")),
}


class Batch:
    """All runs, each done again where a busy machine spoilt it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stop = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._runs = {name: self._pool.submit(self._run, name) for name in RUNS}

    def _run(self, name: str) -> Record:
        for number in range(TRIES):
            record = RUNS[name].run(self.folder / f"{name}-{number}", self._stop)
            if not record.disturbed or RUNS[name].spec.watch_s is not None:
                return record
        return record

    def __getitem__(self, name: str) -> Record:
        return self._runs[name].result()

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    batch = Batch(tmp_path_factory.mktemp("runs"))
    yield batch
    batch.close()


def failed(record: Record) -> set[str]:
    return {check.name for check in record.checks if not check.ok}


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("wrong port", "nothing-crossed"),
        ("wrong port, idle", "rule-matched-forward"),
        ("no rule", "nothing-crossed"),
        ("no rule, idle", "rule-matched-forward"),
        ("wrong port, sink", "nothing-crossed"),
        ("wrong port, sink", "rule-equals-capture-return"),
        ("wrong port, idle, sink", "rule-matched-return"),
        ("sink unseen", "rule-equals-capture-forward"),
        ("one way only", "rule-matched-return"),
        ("both ways, one asked", "nothing-else-lost"),
        ("both ways, one asked, busy", "nothing-else-lost"),
        ("never healed", "nothing-else-lost"),
        ("never healed, idle", "nothing-else-lost"),
        ("healed one way", "nothing-else-lost"),
        ("healed behind the back", "nothing-crossed"),
        ("healed behind the back, idle", "nothing-crossed"),
        ("bystander killed", "bystander-unharmed"),
        ("wrong interface", "rule-equals-capture-forward"),
        ("interfaces swapped", "no-strangers"),
        ("packets dropped", "capture-complete"),
        ("clock stepped", "clocks-steady"),
    ],
)
def test_a_run_that_cannot_prove_itself_is_invalid_and_says_why(runs: Batch, name: str, check: str) -> None:
    record = runs[name]

    assert record.outcome is Outcome.INVALID
    assert check in failed(record)
    assert check in (record.reason or "")


def test_a_server_that_dies_in_the_dark_is_no_silent_loss(runs: Batch) -> None:
    record = runs["server killed"]

    assert record.outcome is not Outcome.CONFIRMED
    assert record.reason


def test_the_same_run_with_nothing_in_its_way_is_confirmed_up_to_its_horizon(runs: Batch) -> None:
    record = runs["undisturbed"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.horizon_s == pytest.approx(1.2, abs=0.3)
    assert record.ends_unresolved == ("client", "server")
    assert any(check.name == "client-horizon" for check in record.checks)


@pytest.mark.parametrize("name", ["sink", "sink, idle", "sink, busy"])
def test_the_same_with_a_sink_at_one_end_proves_itself_by_the_sinks_capture(runs: Batch, name: str) -> None:
    record = runs[name]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (record.fault.matched.forward or 0) >= 1
    assert (record.fault.matched.return_ or 0) >= 1


def test_a_prediction_that_is_off_is_refuted(runs: Batch) -> None:
    record = runs["prediction off"]

    assert record.outcome is Outcome.REFUTED, record.reason
    assert "client-window" in failed(record)


def test_a_prediction_of_an_orphans_end_that_is_off_is_refuted(runs: Batch) -> None:
    record = runs["orphan's prediction off"]

    assert record.outcome is Outcome.REFUTED, record.reason
    assert {"client-orphan", "client-orphan-copies", "client-orphan-rule"} <= failed(record)


def test_a_foreign_clients_output_tells_when_it_noticed(runs: Batch) -> None:
    record = runs["foreign busy"]
    client = record.observation.client

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (client.cause, client.noticed_by, client.errno) == (Cause.RETRIES2, NoticedBy.OUTPUT, None)
    assert record.counters["client"][ENDED_OPEN] == 1
    assert client.gave_up_s is not None
    assert client.noticed_s is not None
    assert 0 <= client.noticed_s - client.gave_up_s + (client.gave_up_within_s or 0) < 1
    assert record.observation.server.never_told


def test_return_only_both_sides_of_a_foreign_pair_give_up_and_exit(runs: Batch) -> None:
    record = runs["foreign exits"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    for end in (record.observation.client, record.observation.server):
        assert (end.cause, end.noticed_by) == (Cause.RETRIES2, NoticedBy.EXIT)
    assert record.fault.matched.forward == 0


def test_a_foreign_client_that_closes_before_its_kernel_gives_up_noticed_by_the_close(runs: Batch) -> None:
    record = runs["foreign watchdog"]
    client = record.observation.client

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert client.noticed_by is NoticedBy.CLOSE
    assert client.noticed_s == client.closed_s
    assert client.noticed_s == pytest.approx((client.first_lost_s or 0) + 1.0, abs=0.35)
    assert (client.gave_up_s, client.cause) == (None, Cause.NONE)
    assert client.orphan is not None
    assert client.copies == (client.copies_until_closed or 0) + (client.orphan.copies or 0)
    assert ENDED_OPEN not in record.counters["client"], "what was closed first does not end open"


def test_a_foreign_clients_keepalive_is_read_and_predicted(runs: Batch) -> None:
    record = runs["foreign keepalive"]
    client = record.observation.client

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.sockets.client.options is not None
    assert record.sockets.client.options["keepalive_interval_s"] == 1.0
    assert (client.cause, client.noticed_by) == (Cause.KEEPALIVE, NoticedBy.OUTPUT)


def test_a_foreign_clients_user_timeout_is_read_and_predicted(runs: Batch) -> None:
    record = runs["foreign user timeout"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.USER_TIMEOUT


@pytest.mark.parametrize("name", ["foreign closed window", "foreign closed window, later"])
def test_a_foreign_client_before_a_closed_window_is_predicted_by_its_probes(runs: Batch, name: str) -> None:
    """Later, the last probe before the cut comes too soon after the one before for the peer to answer it."""
    record = runs[name]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.cause is Cause.PROBES


def test_a_foreign_client_that_resets_is_no_give_up_although_another_connection_of_it_timed_out(runs: Batch) -> None:
    record = runs["foreign abort"]
    client = record.observation.client

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (client.gave_up_s, client.cause, client.noticed_by) == (None, Cause.NONE, NoticedBy.CLOSE)
    assert client.closed_s is not None
    assert record.counters["client"][ABORTED] == 1, "the other one"


FOLLOWS_S = 0.25
"""From a line to the commit that follows it: 10 ms where nobody else wants a processor, and here six runs do."""


def timeline(runs: Batch, name: str) -> list[dict[str, Any]]:
    folder = max(runs.folder.glob(f"{name}-?"))
    return [json.loads(line) for line in (folder / "timeline.jsonl").read_text().splitlines()]


def test_cut_heal_and_end_follow_the_lines_of_the_programs(runs: Batch) -> None:
    record = runs["triggered"]
    lines = {each["detail"]["then"]: each["t_s"] for each in timeline(runs, "triggered") if each["kind"] == "line"}
    said = {word: at for at, _, word in client_log(runs, "triggered")}

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert 0 < -lines["cut"] < FOLLOWS_S
    assert record.fault.healed_s is not None
    assert 0 < record.fault.healed_s - (lines["heal"] + 0.2) < FOLLOWS_S
    assert said["answered"] > said["path"], "the copy after the heal brought what the hole had kept"
    assert record.observation.client.recovered_s is not None
    assert record.horizon_s is not None
    assert 0 <= record.horizon_s - lines["end"] < FOLLOWS_S


def test_the_cut_may_follow_a_line_of_the_server(runs: Batch) -> None:
    record = runs["triggered by the server"]
    line = next(each for each in timeline(runs, "triggered by the server") if each["kind"] == "line")

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert (line["source"], line["detail"]["then"]) == ("server", "cut")


def client_log(runs: Batch, name: str) -> list[tuple[float, str, str]]:
    """Instant, stream and first word of each line."""
    log = max(runs.folder.glob(f"{name}-?")) / "client.log"
    fields = (line.split() for line in log.read_text().splitlines())
    return [(float(at), stream, words[0].strip(",")) for at, stream, *words in fields]


def test_foreign_programs_talk_on_after_a_heal(runs: Batch) -> None:
    record = runs["foreign healed"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.observation.client.recovered_s is not None
    assert record.observation.client.recovered_s > 1.0
    assert (record.observation.client.never_told, record.observation.server.never_told) == (False, False)


def test_a_pattern_that_never_comes_ends_with_the_users_time(runs: Batch) -> None:
    record = runs["foreign never"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert record.horizon_s == pytest.approx(1.5, abs=0.3)
    assert record.observation.client.noticed_s is None
