"""Runs in containers: whatever spoils one makes it INVALID and says why, and so does whatever others do to it.

All runs start at the first test, some side by side, since each mostly waits.
"""

import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab.core.errors import EnvironmentNotReady, LabError, UsageError
from lab.core.fault import Fault
from lab.core.timeline import Observation
from lab.report.folder import RunFolder
from lab.report.record import Outcome, Record
from lab.report.timeline import read_timeline
from lab.run.backend import Images as BackendImages
from lab.run.backend import open_docker
from lab.run.runner import Run
from lab.run.spec import Program, RunSpec
from lab.run.trigger import LineTrigger
from lab.testbed.docker.engine import Engine
from lab.testbed.docker.labels import ROLE, of_testbed
from lab.testbed.docker.testbed import DockerTestbed, Images
from lab.testbed.ports import CaptureSummary, TestbedSpec
from tests.engines import require_engine, require_lab_image
from tests.run.test_real_runs import (
    CONNECT,
    PORT,
    STORY,
    BrokenRouter,
    foreign,
    forward_alone,
    other_port,
    own,
    stepped,
    swapped,
)

if TYPE_CHECKING:
    from docker.models.containers import Container

AT_ONCE = 3
LONGEST_S = 120.0
"""For a run that was spoilt to end; an agent that is paused is waited for twice 30 s."""

WATCH_S = 2.5


class Things:
    """What a testbed has on the engine, as somebody with a shell on the machine sees it."""

    def __init__(self, engine: Engine, testbed: DockerTestbed) -> None:
        self.engine = engine
        self._testbed = testbed

    def holder(self, node: str) -> "Container":
        [found] = self._containers(node)
        return found

    def program(self, name: str) -> "Container":
        [found] = [one for one in self._containers("program") if f"lab.programs.{name}" in one.attrs["Config"]["Cmd"]]
        return found

    def network(self, side: str) -> Any:
        wanted = [*of_testbed(self._testbed.name), f"{ROLE}={side}"]
        [found] = self.engine.client.networks.list(filters={"label": wanted})
        return found

    def left(self) -> list[str]:
        labels = {"label": of_testbed(self._testbed.name)}
        containers = self.engine.client.api.containers(all=True, filters=labels)
        return [one["Id"] for one in (*containers, *self.engine.client.api.networks(filters=labels))]

    def _containers(self, role: str) -> "list[Container]":
        return list(
            self.engine.client.containers.list(
                all=True, ignore_removed=True, filters={"label": [*of_testbed(self._testbed.name), f"{ROLE}={role}"]}
            )
        )


def programs(**changes: Any) -> RunSpec:
    """The lab's own programs, as somebody's images."""
    return foreign(
        server=Program(("lab.programs.server", str(PORT))),
        client=Program(("lab.programs.client", "server", str(PORT))),
        watch_s=WATCH_S,
        **changes,
    )


@dataclass
class Case:
    """A run, and what goes wrong with it."""

    spec: RunSpec
    wrong: Callable[[Fault], Fault] = lambda fault: fault
    summary: Callable[[CaptureSummary], CaptureSummary] = lambda summary: summary
    mishap: Callable[[Things], object] = lambda _: None
    """What somebody does after the cut."""

    images: bool = True
    things: Things | None = field(default=None, init=False)
    took_s: float = field(default=0.0, init=False)
    error: LabError | None = field(default=None, init=False)

    def run(self, engine: Engine, image: str, out: Path) -> Record:
        case = self

        class Broken(DockerTestbed):
            @property
            def router(self) -> Any:
                return BrokenRouter(super().router, case.wrong, case.summary)

        def open_testbed(spec: TestbedSpec) -> Broken:
            testbed = Broken(spec, Images(image, image) if self.images else None)
            self.things = Things(engine, testbed)
            return testbed

        def tell(seen: Observation) -> None:
            if seen.kind == "cut":
                threading.Timer(0.5, self._go_wrong).start()

        run = Run(self.spec, open_testbed, out=out, tell=tell)
        began = time.monotonic()
        try:
            return run.execute()
        except LabError as error:
            self.error = error
            return RunFolder(out).read_record()
        finally:
            self.took_s = time.monotonic() - began

    def _go_wrong(self) -> None:
        assert self.things is not None
        self.mishap(self.things)


def blink(things: Things) -> None:
    """A pause so short that nobody sees it afterwards."""
    container = things.program("client")
    container.pause()
    container.unpause()


def another_network(things: Things) -> None:
    """A way around the router."""
    things.network("right").connect(things.holder("client"))


def fewer_networks(things: Things) -> None:
    """The server's interface goes, and its packets with it."""
    things.network("right").disconnect(things.holder("server"), force=True)


def replug(things: Things) -> None:
    fewer_networks(things)
    things.network("right").connect(things.holder("server"))


def drop_before_the_router(things: Things, *match: str) -> None:
    """Another hole on the way, in the client's own node, which nobody was told of."""
    rule = ["iptables-legacy", "-w", "-A", "OUTPUT", "-p", "tcp", "--dport", str(PORT), *match, "-j", "DROP"]
    status, said = things.holder("client").exec_run(rule)
    assert status == 0, said


OWN = own(watch_s=WATCH_S)

LONG_STORY = STORY.replace("range(8)", "range(30)")
"""Three seconds pass before its first word: until then a run in containers is ready to cut."""

AT_LINES = Case(
    foreign(
        server=Program(("lab.programs.server", str(PORT))),
        client=Program(("timeit", "-n", "1", "-r", "1", CONNECT + LONG_STORY)),
        cut_when=LineTrigger("client", "^asked"),
        heal_when=LineTrigger("client", "^path back", delay_s=0.2),
        end_when=LineTrigger("client", "^done"),
    )
)
"""Not among those above, which every process that has one of their tests runs all of."""

QUICK: dict[str, Case] = {
    "undisturbed": Case(programs()),
    "wrong port": Case(OWN, wrong=other_port, images=False),
    "one way only": Case(programs(), wrong=forward_alone),
    "paused for a moment": Case(programs(), mishap=blink),
    "terminated": Case(programs(), mishap=lambda things: things.program("server").kill("SIGTERM")),
    "server unplugged": Case(programs(), mishap=fewer_networks),
    "server ends at once": Case(replace(programs(), server=Program(("lab.programs.nosuch",)))),
}

SLOW: dict[str, Case] = {
    "interfaces swapped": Case(OWN, summary=swapped, images=False),
    "packets dropped": Case(OWN, summary=lambda s: replace(s, dropped={"left": 1, "right": 0}), images=False),
    "clock stepped": Case(OWN, summary=stepped, images=False),
    "paused": Case(programs(), mishap=lambda things: things.program("client").pause()),
    "killed": Case(programs(), mishap=lambda things: things.program("server").kill()),
    "dropped before the router": Case(programs(), mishap=drop_before_the_router),
    "data dropped before the router": Case(
        programs(), mishap=lambda things: drop_before_the_router(things, "-m", "length", "--length", "60:1500")
    ),
    "stopped": Case(programs(), mishap=lambda things: things.program("client").stop(timeout=1)),
    "program removed": Case(programs(), mishap=lambda things: things.program("server").remove(force=True)),
    "restarted": Case(programs(), mishap=lambda things: things.program("server").restart(timeout=0)),
    "joined to another network": Case(programs(), mishap=another_network),
    "unplugged for a moment": Case(programs(), mishap=replug),
    "router unplugged": Case(
        programs(), mishap=lambda things: things.network("right").disconnect(things.holder("router"), force=True)
    ),
    "node paused for a moment": Case(
        programs(), mishap=lambda things: (things.holder("client").pause(), things.holder("client").unpause())
    ),
    "node paused": Case(programs(), mishap=lambda things: things.holder("server").pause()),
    "router paused": Case(programs(), mishap=lambda things: things.holder("router").pause()),
    "node killed": Case(programs(), mishap=lambda things: things.holder("server").kill()),
    "node removed": Case(programs(), mishap=lambda things: things.holder("client").remove(force=True)),
    "router killed": Case(programs(), mishap=lambda things: things.holder("router").kill()),
}


class Batch:
    """Runs side by side."""

    def __init__(self, engine: Engine, image: str, cases: dict[str, Case], folder: Path) -> None:
        self.folder = folder
        self.cases = cases
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._runs = {name: self._pool.submit(case.run, engine, image, folder / name) for name, case in cases.items()}

    def __getitem__(self, name: str) -> Record:
        return self._runs[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def batch(cases: dict[str, Case], folder: Path) -> Iterator[Batch]:
    with require_engine() as engine:
        made = Batch(engine, require_lab_image(engine), cases, folder)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    with batch(QUICK, tmp_path_factory.mktemp("quick")) as made:
        yield made


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    with batch(SLOW, tmp_path_factory.mktemp("slow")) as made:
        yield made


def spoilt(runs: Batch, name: str, said: str) -> None:
    record, case = runs[name], runs.cases[name]
    assert record.outcome is Outcome.INVALID
    assert said in (record.reason or "")
    assert case.took_s < LONGEST_S
    assert {"record.json", "timeline.jsonl", "left.pcapng", "right.pcapng"} <= {
        path.name for path in (runs.folder / name).iterdir()
    }
    assert case.things is not None
    assert case.things.left() == []


def test_with_nothing_in_its_way_a_run_of_images_is_confirmed(quick: Batch) -> None:
    record = quick["undisturbed"]

    assert record.outcome is Outcome.CONFIRMED, record.reason
    assert any(check.name == "left-alone" for check in record.checks)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong port", "nothing-crossed"),
        ("one way only", "rule-matched-return"),
        ("paused for a moment", "left-alone"),
        ("terminated", "left-alone"),
        ("server unplugged", "disconnect of a container at network"),
    ],
)
def test_a_run_that_is_spoilt_is_invalid_says_why_and_leaves_nothing(quick: Batch, name: str, said: str) -> None:
    spoilt(quick, name, said)


def test_cut_heal_and_end_follow_what_a_container_prints(tmp_path: Path) -> None:
    with require_engine() as engine:
        record = AT_LINES.run(engine, require_lab_image(engine), tmp_path / "run")
    assert record.outcome is Outcome.CONFIRMED, record.reason

    entries = read_timeline(tmp_path / "run" / "timeline.jsonl").entries
    lines = {one.detail["then"]: t for t, one in entries if one.kind == "line"}
    assert record.fault.healed_s is not None
    assert record.horizon_s is not None
    assert lines["cut"] < 0 < lines["heal"] + 0.2 < record.fault.healed_s < lines["end"] <= record.horizon_s


def test_a_server_that_ends_at_once_is_named_by_its_image_with_what_it_said(quick: Batch) -> None:
    spoilt(quick, "server ends at once", "ended with status 1 before it listened. Its last lines: ")

    error, record = quick.cases["server ends at once"].error, quick["server ends at once"]
    assert isinstance(error, UsageError)
    assert "No module named lab.programs.nosuch" in (record.reason or "")
    assert "No module named lab.programs.nosuch" in (quick.folder / "server ends at once" / "server.log").read_text()


def test_an_image_that_is_not_there_is_named_before_anything_is_made(tmp_path: Path) -> None:
    with require_engine() as engine:
        require_lab_image(engine)
    run = Run(programs(), open_docker(BackendImages(server="nosuch/image:1")), out=tmp_path / "out")
    with pytest.raises(EnvironmentNotReady) as caught:
        run.execute()

    assert caught.value.fix == "docker pull nosuch/image:1"
    assert RunFolder(tmp_path / "out").read_record().outcome is Outcome.INVALID
    assert not (tmp_path / "out" / "left.pcapng").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("interfaces swapped", "no-strangers"),
        ("packets dropped", "capture-complete"),
        ("clock stepped", "clocks-steady"),
        ("paused", "left-alone"),
        ("killed", "left-alone"),
        ("dropped before the router", "client's own node does not let the flow's packets out"),
        ("data dropped before the router", "client-counters-agree"),
        ("stopped", "left-alone"),
        ("program removed", "of the container of"),
        ("restarted", "left-alone"),
        ("joined to another network", "left-alone"),
        ("unplugged for a moment", "of a container at network"),
        ("router unplugged", "disconnect of a container"),
        ("node paused for a moment", "left-alone"),
        ("node paused", "pause of the server's container"),
        ("router paused", "pause of the router's container"),
        ("node killed", "kill (signal 9) of the server's container"),
        ("node removed", "kill (signal 9) of the client's container"),
        ("router killed", "kill (signal 9) of the router's container"),
    ],
)
def test_whatever_somebody_does_to_its_containers_makes_it_invalid(slow: Batch, name: str, said: str) -> None:
    spoilt(slow, name, said)
