"""``lab run`` as people type it: mistakes are told before anything starts, and nothing that was found is lost.

Runs that need namespaces start together at the first test and mostly wait.
"""

import concurrent.futures
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from lab.cli.run import run
from lab.core.errors import LabError, Unsupported, UsageError
from tests.testbed.netns.test_clean_up import mark, wait_until_gone

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "record.schema.json").read_text())
AT_ONCE = 5
LONGEST_S = 100.0

ECHO = """
import socket, threading
def serve(c):
    while d := c.recv(100):
        c.sendall(d)
l = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    threading.Thread(target=serve, args=l.accept()[:1], daemon=True).start()
"""
CONNECT = "import socket, time\nfirst = s = socket.create_connection(('server', 5000))\n"
TALK = "while True:\n    s.sendall(b'x')\n    s.recv(9)\n    time.sleep(0.1)\n"
STORY = """
for _ in range(8):
    s.sendall(b'x')
    s.recv(9)
    time.sleep(0.1)
print('asked', flush=True)
time.sleep(0.3)
s.sendall(b'y')
time.sleep(0.5)
print('path back', flush=True)
s.recv(9)
print('done', flush=True)
time.sleep(60)
"""
SECOND = """
s.sendall(b'x')
s.recv(9)
time.sleep(0.2)
s = socket.create_connection(('server', 5000))
print(s.getsockname()[1], flush=True)
"""


def python(*code: str) -> str:
    return shlex.join(["python3", "-u", "-c", "".join(code)])


def programs(client: str = "", server: str = "") -> list[str]:
    return ["--server", server or python(ECHO), "--client", client or python(CONNECT, TALK), "--port", "5000"]


SHORT = ("--profile", "fast", "--cut-after", "0.2", "--for", "1")

PARSED = typer.Typer()
PARSED.command()(run)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (["--cut-after", "soon"], UsageError, "--cut-after: Expected a duration, got 'soon'"),
        (["--for", "-3s"], UsageError, "--for: Expected a duration"),
        (["--for", "0"], UsageError, "Watching must take some time"),
        (["--heal-after", "1e3"], UsageError, "--heal-after: Expected a duration"),
        (["--heal-after", "9", "--for", "5"], UsageError, "would come after the watch"),
        (["--direction", "up"], UsageError, "none of them. Fix: --direction both or forward or return"),
        (["--direction", "Forwards"], UsageError, "Fix: --direction forward"),
        (["--scope", "world"], UsageError, "--scope is one of flow, host"),
        (["--flow", "second"], UsageError, "'second' is none"),
        (["--cut-when", "("], UsageError, "--cut-when: '(' is no regular expression"),
        (["--cut-when", "x", "--cut-after", "soon"], UsageError, "--cut-after: Expected a duration"),
        (["--heal-when", "server:["], UsageError, "--heal-when: '[' is no regular expression"),
        (["--until", "*"], UsageError, "--until: '*' is no regular expression"),
        (["--noticed", "["], UsageError, "Fix: for this text as it stands: \\["),
        (["--profile", "fsat"], UsageError, "profiles linux, fast, study-server"),
        (["--profile", "/nowhere/my.toml"], UsageError, "cannot be read: No such file"),
        (["--sysctl", "client:tcp_retries2"], UsageError, "NODE:KEY=VALUE"),
        (["--sysctl", "clinet:net.ipv4.tcp_retries2=5"], UsageError, "no node 'clinet'"),
        (["--server", "'unbalanced"], UsageError, "--server cannot be split"),
        (["--client", ""], UsageError, "--client is empty"),
        (["--port", "70000"], UsageError, "1 to 65535; it is 70000. Fix: give the port"),
        (["--backend", "podman"], UsageError, "'podman' is none of them"),
        (["--uplink", "203.0.113.9:443"], UsageError, "--server, --server-image and --port do not go with it"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    options: list[str], kind: type[LabError], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(PARSED, [*programs(), *options])

    assert isinstance(result.exception, kind), result.output
    assert said in str(result.exception)
    assert list(tmp_path.iterdir()) == [], "no folder of a run that never was"


def test_an_embedded_run_with_an_uplink_is_unsupported_and_names_the_backend_that_has_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--client", "cli", "--uplink", "203.0.113.9:443", "--backend", "netns", "--out", str(out)]
    result = CliRunner().invoke(PARSED, options)
    record = json.loads((out / "record.json").read_text())

    assert isinstance(result.exception, Unsupported)
    assert result.exception.fix == "--backend docker"
    assert record["outcome"] == "unsupported"
    assert record["uplink"] == {"host": "203.0.113.9", "port": 443, "address": "203.0.113.9", "translated": None}
    jsonschema.validate(record, SCHEMA)


def test_an_unknown_key_in_a_profile_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[sysctls]\ntcp_retires2 = 5\n")
    result = CliRunner().invoke(PARSED, [*programs(), "--profile", str(tmp_path / "mine.toml")])

    assert isinstance(result.exception, UsageError)
    assert "unknown sysctl 'tcp_retires2'" in result.exception.message
    assert result.exception.fix == "did you mean net.ipv4.tcp_retries2?"


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str
    folder: Path
    mark: str

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "record.json").read_text())
        return found


@dataclass(frozen=True)
class Case:
    """A command line and what surrounds it."""

    options: Sequence[str]
    verb: str = "run"
    env: tuple[tuple[str, str], ...] = ()
    within: tuple[str, ...] = ()
    """Command that runs it; {out} is the folder."""

    interrupt: str | None = None
    """Send SIGINT to the process group once standard error has this, or once the folder has this file."""


HEARS_CTRL_C = ("env", "--default-signal=INT")
"""A shell that runs the tests in the background makes its children deaf to it."""

HIDE = (("LAB_WITHOUT_SYSCTLS", "net.ipv4.tcp_rto_max_ms"),)
NO_NAMESPACES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh")
READ_ONLY = ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o ro none "{out}"; exec "$@"', "sh")
TINY = (
    "unshare",
    "-Urm",
    "sh",
    "-c",
    'mount -t tmpfs -o size=160k none "{out}"; "$@"; s=$?; cat "{out}/record.json"; exit $s',
    "sh",
)
FLOOD = python(CONNECT, "while True:\n    s.sendall(bytes(90))\n    s.recv(100)\n")

CASES: dict[str, Case] = {
    "client exits": Case([*programs(client=python("print('cannot find my config')\nraise SystemExit(3)")), *SHORT]),
    "newest": Case([*programs(client=python(CONNECT, SECOND, TALK)), *SHORT, "--cut-after", "1", "--flow", "newest"]),
    "first": Case(
        [
            *programs(client=python(CONNECT, SECOND, "s = first\n", TALK)),
            *SHORT,
            "--cut-after",
            "1",
            "--flow",
            "first",
            "--json",
            "--ipv6",
        ]
    ),
    "no knob": Case([*programs(), *SHORT, "--profile", "study-server"], env=HIDE),
    "no permission": Case([*programs(), *SHORT, "--backend", "netns"], within=NO_NAMESPACES),
    "read-only": Case([*programs(), *SHORT], within=READ_ONLY),
    "full": Case([*programs(client=FLOOD), *SHORT], within=TINY),
    "demo without the knob": Case([], verb="demo", env=HIDE),
    "interrupted while it comes up": Case([*programs(), *SHORT], interrupt="Bringing up"),
    "interrupted before the cut": Case([*programs(), *SHORT, "--cut-after", "30"], interrupt="Connected"),
    "triggers": Case(
        [
            *programs(client=python(CONNECT, STORY)),
            *("--profile", "fast", "--json", "--cut-when", "^asked", "--cut-after", "50ms"),
            *("--heal-when", "^path back", "--until", "client:^done"),
        ]
    ),
    "no line": Case([*programs(client=python(CONNECT, STORY)), *SHORT, "--heal-when", "server:^never"]),
    "interrupted in the dark": Case([*programs(), *SHORT, "--for", "60"], interrupt="The flow is dark"),
    "interrupted while it reports": Case([*programs(), *SHORT], interrupt="client.log"),
}


def start(case: Case, folder: Path, errors: Path, marked: str) -> "subprocess.Popen[str]":
    within = [word.replace("{out}", str(folder)) for word in case.within]
    name, value = marked.split("=")
    with errors.open("w") as stderr:
        return subprocess.Popen(
            [*HEARS_CTRL_C, *within, sys.executable, "-m", "lab", case.verb, *case.options, "--out", str(folder)],
            cwd=ROOT,
            env={**os.environ, **dict(case.env), name: value},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )


def interrupt(process: "subprocess.Popen[str]", at: str, folder: Path, errors: Path) -> None:
    """Ctrl-C: a terminal sends it to the whole group."""
    deadline = time.monotonic() + LONGEST_S
    while at not in errors.read_text() and not (folder / at).exists():
        assert process.poll() is None, errors.read_text()
        assert time.monotonic() < deadline, errors.read_text()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)


def perform(case: Case, folder: Path) -> Done:
    folder.mkdir()
    errors, marked = folder.with_suffix(".err"), mark()
    with start(case, folder, errors, marked) as process:
        if case.interrupt is not None:
            interrupt(process, case.interrupt, folder, errors)
        out, _ = process.communicate(timeout=LONGEST_S)
    return Done(process.returncode, out, errors.read_text(), folder, marked)


class Commands:
    """All cases, side by side."""

    def __init__(self, folder: Path) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._runs = {
            name: self._pool.submit(perform, case, folder / name.replace(" ", "-")) for name, case in CASES.items()
        }

    def __getitem__(self, name: str) -> Done:
        return self._runs[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("client exits", 2, "ended with status 3 before it connected. Its last lines: cannot find my config"),
        ("no line", 2, "The server printed no line with '^never' before the watch ended. It printed nothing"),
        ("no knob", 4, "study-server depends on net.ipv4.tcp_rto_max_ms"),
        ("no permission", 5, "namespace"),
    ],
)
def test_what_cannot_be_judged_is_said_with_the_contracts_code_and_kept(
    commands: Commands, name: str, code: int, said: str
) -> None:
    done = commands[name]
    told = " ".join(done.stderr.split())

    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in told
    outcome = "unsupported" if code == 4 else "invalid"
    assert (done.record["outcome"], done.record["interrupted"]) == (outcome, False)
    assert said.split(" before")[0] in " ".join(done.record["reason"].split())
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_a_read_only_folder_is_said_before_anything_starts(commands: Commands) -> None:
    done = commands["read-only"]

    assert (done.returncode, done.stdout) == (5, "")
    assert "cannot be written to" in " ".join(done.stderr.split())
    assert "--out DIR" in done.stderr
    assert "Connected" not in done.stderr


def test_a_folder_that_fills_up_is_said_and_what_was_written_stays_invalid(commands: Commands) -> None:
    done = commands["full"]

    assert done.returncode == 5, done.stderr
    assert "No space left" in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["outcome"] == "invalid"


def test_json_is_one_record_on_standard_output_and_nothing_else(commands: Commands) -> None:
    done = commands["first"]
    record = json.loads(done.stdout)

    jsonschema.validate(record, SCHEMA)
    assert (done.returncode, record["outcome"]) == (0, "confirmed"), done.stderr
    assert record == done.record
    assert set(record["artefacts"]) >= {"record.json", "timeline.jsonl", "client.log", "report.md", "figure.png"}
    assert "The flow is dark" in done.stderr
    assert any(check["name"] == "client-horizon" for check in record["checks"])


def test_lines_of_the_programs_trigger_cut_heal_and_end(commands: Commands) -> None:
    done = commands["triggers"]

    assert done.returncode == 0, done.stderr
    assert done.record["fault"]["healed_at"] - done.record["fault"]["cut_at"] == pytest.approx(0.75, abs=0.2)
    assert done.record["observation"]["client"]["recovered_s"] < done.record["horizon_s"] < 5


def second_port(done: Done) -> str:
    return (done.folder / "client.log").read_text().split()[2]


def test_of_two_flows_the_newest_or_the_first_is_cut(commands: Commands) -> None:
    newest, first = commands["newest"], commands["first"]

    assert newest.returncode == 0, newest.stderr
    assert newest.record["flow"]["server"].endswith("20:5000"), "an IPv4 address, although the listener is of IPv6"
    assert newest.record["flow"]["client"].endswith(f":{second_port(newest)}")
    assert first.record["flow"]["client"].startswith("["), "with --ipv6"
    assert not first.record["flow"]["client"].endswith(f":{second_port(first)}")


def test_what_people_read_fits_eighty_columns_where_it_is_no_terminal(commands: Commands) -> None:
    done = commands["newest"]

    assert "CONFIRMED up to the horizon only" in done.stdout
    assert max(map(len, (done.stdout + done.stderr).splitlines())) <= 80


def test_the_demo_fits_its_time_without_the_knob_on_retries_alone(commands: Commands) -> None:
    done = commands["demo without the knob"]
    record = done.record

    assert (done.returncode, record["outcome"]) == (0, "confirmed"), record["reason"]
    assert record["settings"]["client"]["net.ipv4.tcp_retries2"] == "3"
    assert "net.ipv4.tcp_rto_max_ms" not in record["settings"]["client"]
    assert record["horizon_s"] < 10, "of 20 s; the rest is for coming up and for the report"
    assert "kernel gives up" in done.stderr


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.interrupt])
def test_ctrl_c_at_any_moment_leaves_an_invalid_record_and_nothing_running(commands: Commands, name: str) -> None:
    done = commands[name]

    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.rstrip().endswith("Interrupted.")
    assert (done.record["outcome"], done.record["interrupted"]) == ("invalid", True)
    wait_until_gone(done.mark)


def test_ctrl_c_in_the_dark_keeps_what_was_seen(commands: Commands) -> None:
    done = commands["interrupted in the dark"]

    assert done.record["reason"] == "the run was interrupted"
    assert done.record["prediction"]["client"]["sending"]["cause"] == "retries2"
    assert {"left.pcapng", "client.log", "timeline.jsonl"} <= set(done.record["artefacts"])
    assert '"kind": "cut"' in (done.folder / "timeline.jsonl").read_text()
