"""What a user got wrong that only shows once things run: told, recorded as INVALID, and over soon.

The runs start together at the first test, since some of them wait for what never comes.
"""

import concurrent.futures
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.core.errors import LabError, UsageError
from lab.report.folder import RunFolder
from lab.report.record import Outcome
from lab.run.runner import Run
from lab.run.spec import Action, Program, RunSpec
from lab.run.trigger import LineTrigger
from lab.testbed.netns import open_testbed
from tests.run.test_real_runs import ECHO, PORT, TALK, foreign, own, python

EARLIER = "s.sendall(b'x')\ns.recv(9)\ntime.sleep(0.5)\n"

MISTAKES: dict[str, tuple[RunSpec, str]] = {
    "no such command": (foreign(server=Program(("nosuchserver",))), "'nosuchserver' is not on PATH"),
    "not executable": (foreign(server=Program(("/etc/passwd",))), "cannot be executed: permission denied"),
    "server ends": (foreign(server=python("print('no config')")), "ended with status 0 before it listened. Its last"),
    "nobody listens": (
        foreign(server=python(ECHO.replace(str(PORT), "5001"))),
        "nobody listens on TCP port 5000; it listens on 5001",
    ),
    "on loopback": (foreign(server=python(ECHO.replace('""', '"127.0.0.1"'))), "it listens on 127.0.0.1:5000"),
    "no flow": (foreign(client=Program(("sleep", "60"))), "it has no connection to port 5000"),
    "no talk": (foreign("time.sleep(60)"), "Data in both directions was expected before the cut"),
    "two flows": (foreign("t = socket.create_connection(('server', 5000))\n" + TALK), "2 flows match"),
    "a second flow later": (
        foreign(EARLIER + "t = socket.create_connection(('server', 5000))\n" + TALK, cut_after_s=1.0),
        "2 flows match",
    ),
    "client exits": (foreign(EARLIER + "sys.exit('tired')", cut_after_s=1.0), "ended with status 1 before it could be"),
    "client closes": (
        foreign(EARLIER + "s.close()\ntime.sleep(60)", cut_after_s=1.0),
        "closed the connection before the cut",
    ),
    "client shuts down": (
        foreign(EARLIER + "s.shutdown(socket.SHUT_WR)\ntime.sleep(60)", cut_after_s=1.0),
        "before the cut",
    ),
    "server dies": (
        own(actions=(Action(-0.5, "server", signal=9),), cut_after_s=1.0),
        "'python -m lab.programs.server 5000' ended with status -9 before it could be cut off",
    ),
    "unknown sysctl": (
        foreign(sysctls={"router": {"net.ipv4.tcp_retires2": "5"}}),
        "There is no sysctl net.ipv4.tcp_retires2 in the router node",
    ),
    "not a namespace's": (foreign(sysctls={"client": {"kernel.panic": "1"}}), "is not a sysctl of a network namespace"),
    "refused value": (foreign(sysctls={"client": {"net.ipv4.tcp_retries2": "many"}}), "The kernel refuses 'many'"),
    "no line to cut at": (
        foreign(cut_when=LineTrigger("client", "^booked", within_s=1.0)),
        "The client printed no line with '^booked' within 1 s. It printed nothing",
    ),
    "ends before the line to cut at": (
        foreign(EARLIER + "print('good bye')", cut_when=LineTrigger("client", "^booked")),
        "ended with status 0. Its last lines: good bye",
    ),
    "no line to heal at": (
        foreign(heal_when=LineTrigger("server", "path back"), watch_s=1.5, cut_after_s=0.3),
        "The server printed no line with 'path back' before the watch ended",
    ),
    "no line to end at": (
        foreign(end_when=LineTrigger("client", "done", within_s=2.0), cut_after_s=0.3),
        "The client printed no line with 'done' within 2 s",
    ),
    "no such firewall": (foreign(firewall="pf"), "pf"),
}


def fail(spec: RunSpec, out: Path) -> LabError:
    with pytest.raises(LabError) as caught:
        Run(spec, open_testbed, out=out).execute()
    return caught.value


class Failures:
    """All of them, side by side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pool = concurrent.futures.ThreadPoolExecutor(8)
        self._runs = {
            name: self._pool.submit(fail, spec, folder / str(number))
            for number, (name, (spec, _)) in enumerate(MISTAKES.items())
        }

    def __getitem__(self, name: str) -> LabError:
        return self._runs[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failures]:
    started = Failures(tmp_path_factory.mktemp("mistakes"))
    yield started
    started.close()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_and_recorded(failures: Failures, name: str) -> None:
    error = failures[name]
    folder = RunFolder(failures.folder / str(list(MISTAKES).index(name)))
    record = folder.read_record()

    assert isinstance(error, UsageError)
    assert MISTAKES[name][1] in str(error)
    assert (record.outcome, record.interrupted, record.reason) == (Outcome.INVALID, False, str(error))
    assert {"record.json", "timeline.jsonl"} <= set(folder.artefacts())
