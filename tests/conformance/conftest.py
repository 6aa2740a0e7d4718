"""A testbed with the lab's session server in it, and programs that know of nothing but google-genai."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.core.fault import Fault
from lab.core.flow import Endpoint, FourTuple
from lab.run.settle import nudge
from lab.testbed.netns import NetnsTestbed
from lab.testbed.ports import Process, TestbedSpec
from tests.engines import do_without

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RELEASES = sorted(path.stem.removeprefix("genai-") for path in (ROOT / "requirements").glob("genai-*.lock"))

HASTE = ("--set", "words_per_s=10")
"""How fast the model speaks is not the question here; a client hears a turn's end when its audio is over."""

READY_S = 20.0
PROGRAM_S = 60.0
"""Until a program has ended; importing google-genai takes seconds where several do at once."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A flow that is dark."""

    fault: Fault
    since: float
    """CLOCK_MONOTONIC, which the programs tell too."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A testbed, its session server, and one release of google-genai."""

    testbed: NetnsTestbed
    server: Process
    python: Path
    environment: dict[str, str]
    """All that a program is told."""

    def start(self, program: str, *argv: str, **environment: str) -> Process:
        """One of the programs in the client node."""
        command = (str(self.python), "-u", str(HERE / "programs" / f"{program}.py"), *argv)
        return self.testbed.client.spawn(command, env=self.environment | environment)

    def start_client(self, *argv: str) -> Process:
        """The lab's reference client in the same environment; the lab is found by PYTHONPATH."""
        command = (str(self.python), "-u", "-m", "lab.live.client", *argv)
        return self.testbed.client.spawn(command, env=self.environment | {"PYTHONPATH": str(ROOT)})

    def finish(self, process: Process) -> "Events":
        """What a program has said in all; it must have come to its own end."""
        status = process.wait(PROGRAM_S)
        output = "\n".join(f"{line.stream} {line.text}" for line in (*process.lines, *self.server.lines))
        assert status == 0, output
        events = Events(process)
        assert events.last("done"), output
        return events

    def cut(self, process: Process) -> Hole:
        """A hole in the router for the first connection of the program, proven to be one."""
        found = Events(process).first("connected")
        flow = FourTuple(Endpoint(*found["local"]), Endpoint(*found["remote"]))
        fault = Fault(flow)
        self.testbed.router.prepare(fault)
        receipt = self.testbed.router.cut(fault)
        nudge(self.testbed, fault)
        return Hole(fault, receipt.done_at)


class Events:
    """What a program has said so far."""

    def __init__(self, process: Process) -> None:
        said = [line.text for line in process.lines if line.stream == "stdout"]
        self.all: list[dict[str, Any]] = [json.loads(text) for text in said if text.startswith("{")]

    def of(self, event: str) -> list[dict[str, Any]]:
        """All of a kind."""
        return [one for one in self.all if one["event"] == event]

    def first(self, event: str, *, since: str | None = None) -> dict[str, Any]:
        """The first of a kind, or the first after one of another kind."""
        from_ = 0 if since is None else self.all.index(self.first(since))
        return next(one for one in self.all[from_:] if one["event"] == event)

    def last(self, event: str) -> dict[str, Any]:
        """The last of a kind."""
        return self.of(event)[-1]


def wait_for(process: Process, event: str) -> None:
    """Until the program says this."""
    process.wait_for_line(f'"event": "{event}"', PROGRAM_S)


@pytest.fixture(params=RELEASES)
def python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment with one release of google-genai; skipped without, a failure with CI=true."""
    release: str = request.param
    found = ROOT / ".venv" / "genai" / release / "bin" / "python"
    if not found.exists():
        do_without(f"There is no google-genai {release} here; make conformance brings it")
    return found


@pytest.fixture
def clip() -> str:
    """A spoken request, 16 kHz WAV."""
    return str(ROOT / "lab" / "live" / "voice" / "clips" / "book.wav")


@pytest.fixture
def ipv6() -> bool:
    """Which family the name ``server`` resolves to; a test may say otherwise."""
    return False


@pytest.fixture
def stage(python: Path, ipv6: bool, tmp_path: Path) -> Iterator[Stage]:
    with NetnsTestbed(TestbedSpec(ipv6=ipv6)) as testbed:
        authority = tmp_path / "authority"
        server = testbed.server.spawn_module(
            "lab.live.server",
            ("--tls-port", "0", "--ca", str(authority), "--log", str(tmp_path / "frames.jsonl"), *HASTE),
        )
        server.wait_for_line('"event": "listening"', READY_S)
        port = Events(server).first("listening")["wss"]
        environment = {
            "SSL_CERT_FILE": str(authority / "ca.pem"),
            "GOOGLE_GEMINI_BASE_URL": f"https://server:{port}",
            "GEMINI_API_KEY": "any",
        }
        yield Stage(testbed, server, python, environment)
